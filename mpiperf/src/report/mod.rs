//! Rows as table, CSV, JSON, pictures.
