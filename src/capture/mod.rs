//! The reconciler: index to projection to snapshot.
