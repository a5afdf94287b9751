//! How precise real numbers are.

use crate::named::named;
use serde::{Deserialize, Serialize};

named! {
    /// What `real` is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Precision {
        /// Single precision.
        F32 = "f32";
        /// Double precision.
        #[default]
        F64 = "f64";
    }
}

impl Precision {
    /// Bytes of a real.
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }
}
