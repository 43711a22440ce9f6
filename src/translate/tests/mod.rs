//! Tests of the translation as a whole.
