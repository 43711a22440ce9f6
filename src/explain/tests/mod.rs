//! Explanations of small worlds.
