//! The golden file.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A scalar function of a vector and its derivatives.
#[derive(Deserialize)]
pub struct Golden {
    /// How the table's operation enters the function (tables only).
    #[serde(default)]
    pub form: String,
    pub n: usize,
    pub lo: f64,
    pub hi: f64,
    pub value: f64,
    pub d1: Vec<f64>,
    pub d2: Vec<f64>,
    pub d3: Vec<f64>,
}

/// Derivatives of a field by coordinates.
#[derive(Deserialize)]
pub struct JetGolden {
    pub partials: BTreeMap<String, Vec<f64>>,
    pub laplacian: Vec<f64>,
    pub biharmonic: Vec<f64>,
    pub third: Vec<f64>,
    pub residual: f64,
    pub gradient: Vec<f64>,
}

#[derive(Deserialize)]
pub struct Goldens {
    pub unary: BTreeMap<String, Golden>,
    pub binary: BTreeMap<String, Golden>,
    pub case: BTreeMap<String, Golden>,
    pub jet: BTreeMap<String, JetGolden>,
}

/// The file, read once.
pub fn goldens() -> &'static Goldens {
    static ALL: OnceLock<Goldens> = OnceLock::new();
    ALL.get_or_init(|| {
        serde_json::from_str(include_str!("../goldens/goldens.json"))
            .expect("goldens.json is the output of make_goldens.py")
    })
}
