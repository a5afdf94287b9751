//! Architectures of GPUs, by their names.

use serde::Serialize;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The oldest that any NVRTC since CUDA 12 compiles for.
const OLDEST: i32 = 50;

/// The name of an architecture: `sm_90`, or `sm_90a`. There is no other way to make one than from a text that is such a name, so
/// that it may stand in an option of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Arch(String);

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match number(text) {
            Some((number, _)) if number >= OLDEST => Ok(Self(text.to_owned())),
            Some(_) => Err(format!("no CUDA compiles for it any more: sm_{OLDEST} is the oldest that there is")),
            None => Err("architectures are spelled like sm_90, or sm_90a".to_owned()),
        }
    }
}

impl Deref for Arch {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of an architecture, without and with the letter of a variant: `sm_90a` is 90 and `90a`. Nothing if the text is none.
pub(super) fn number(text: &str) -> Option<(i32, &str)> {
    let whole = text.strip_prefix("sm_")?;
    let digits = whole.strip_suffix(['a', 'f']).unwrap_or(whole);
    // `parse` would take a sign.
    let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number && !digits.starts_with('0'))?;
    Some((number, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures_alone_are_taken() {
        for right in ["sm_50", "sm_90", "sm_90a", "sm_100f", "sm_120"] {
            assert_eq!(right.parse::<Arch>().unwrap().to_string(), right);
        }
        let wrong = [
            "",
            "sm_",
            "sm_00",
            "sm_09",
            "sm_9",
            "sm_049",
            "sm_1000",
            "sm_+90",
            "sm_-90",
            "sm_90b",
            "sm_90aa",
            "SM_90",
            "sm_90 ",
            "compute_90",
            "90",
            "sm_90; rm -rf /",
            "sm_90 --include-path=/",
            "sm_90\n",
            "sm_\u{0663}\u{0663}",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Arch>().unwrap_err().contains("spelled like sm_90"), "{wrong}");
        }
        assert!("sm_20".parse::<Arch>().unwrap_err().contains("sm_50 is the oldest"));
    }
}
