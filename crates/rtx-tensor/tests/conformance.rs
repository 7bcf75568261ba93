//! Every operation, in f32 and f64, at derivative orders 0 to 3, in reverse and forward mode, against
//! float64 goldens of an independent library (`goldens/make_goldens.py`).
//!
//! A row added to an operation table without a golden fails here.

#[path = "conformance/cases.rs"]
mod cases;
#[path = "conformance/goldens.rs"]
mod goldens;
#[path = "conformance/inputs.rs"]
mod inputs;
#[path = "conformance/jets.rs"]
mod jets;
#[path = "conformance/orders.rs"]
mod orders;
#[path = "conformance/plain.rs"]
mod plain;
#[path = "conformance/table.rs"]
mod table;
