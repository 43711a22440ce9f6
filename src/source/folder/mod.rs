//! A folder of manifests.
