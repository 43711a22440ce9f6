//! The projection, translated to Envoy's resources. Pure; never awaits.
