//! Knobs: numbers that users can choose, and that mean something to some strategies alone.

use super::ACCESSES;
use crate::diagnostic::Refusal;
use crate::ir::Precision;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A knob of a strategy.
#[derive(Debug)]
pub struct Knob {
    /// What choices and the command line call it.
    pub name: &'static str,
    /// How its numbers are written, as `IxJ`.
    pub form: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its numbers, if nothing else is asked for.
    pub usual: fn(Precision) -> &'static [u32],
    /// Whether it can have these numbers.
    pub is_possible: fn(&[u32]) -> bool,
    /// What is wrong with others: what they say, behind the numbers themselves, and which are possible.
    pub others: [&'static str; 2],
    /// What a wide search tries.
    pub searched: &'static [&'static str],
}

/// The numbers of a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(Vec<u32>);

/// Settings by the names of their knobs. A knob that has none is as usual.
pub type Knobs = BTreeMap<String, Setting>;

/// How settings stand in files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(u32),
    Several(Vec<u32>),
    Other(IgnoredAny),
}

/// Reads settings among other entries: what is no knob of any strategy is of another version, and left out.
///
/// # Errors
/// A knob has no numbers.
pub(crate) fn known<'a, D: Deserializer<'a>>(entries: D) -> Result<Knobs, D::Error> {
    let mut settings = Knobs::new();
    for (name, written) in BTreeMap::<String, Written>::deserialize(entries)? {
        if let Some(knob) = knobs().into_iter().find(|knob| knob.name == name) {
            let setting = match written {
                Written::One(number) => Setting(vec![number]),
                Written::Several(numbers) if !numbers.is_empty() => Setting(numbers),
                Written::Several(_) | Written::Other(_) => {
                    return Err(D::Error::custom(format!("`{name}` has to be {}, in numbers", knob.form)));
                }
            };
            settings.insert(name, setting);
        }
    }
    Ok(settings)
}

/// Every knob of every strategy, once each.
pub fn knobs() -> Vec<&'static Knob> {
    let mut all: Vec<&Knob> = Vec::new();
    for knob in ACCESSES.iter().flat_map(|access| access.knobs()) {
        if all.iter().all(|own| own.name != knob.name) {
            all.push(knob);
        }
    }
    all
}

impl Knob {
    /// The numbers of the knob among settings; those that are missing are 1.
    pub fn of<const N: usize>(&self, knobs: &Knobs, precision: Precision) -> [u32; N] {
        let numbers = knobs.get(self.name).map_or((self.usual)(precision), |own| &own.0);
        std::array::from_fn(|number| numbers.get(number).copied().unwrap_or(1))
    }

    /// Its setting among settings.
    pub fn setting(&self, knobs: &Knobs, precision: Precision) -> Setting {
        knobs.get(self.name).cloned().unwrap_or_else(|| (self.usual)(precision).into())
    }

    /// Returns a setting that is possible as it is.
    ///
    /// # Errors
    /// It is not.
    pub fn checked(&self, setting: Setting) -> Result<Setting, Refusal> {
        let [what, possible] = self.others;
        match (self.is_possible)(&setting.0) {
            true => Ok(setting),
            false => Err(Refusal::new(format!("{setting} {what}")).help(possible)),
        }
    }

    /// Reads a setting as it is written: `8`, or `2x4`.
    ///
    /// # Errors
    /// It is not written so, or not possible.
    pub fn read(&self, text: &str) -> Result<Setting, Refusal> {
        let numbers: Option<Vec<u32>> = text.split('x').map(|number| number.parse().ok()).collect();
        let Some(numbers) = numbers.filter(|all| all.len() == self.form.split('x').count()) else {
            return Err(Refusal::new(format!("`{text}` is not of the form {}", self.form)).help(self.others[1]));
        };
        self.checked(Setting(numbers))
    }
}

impl Setting {
    /// Its numbers.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl<T: AsRef<[u32]>> From<T> for Setting {
    fn from(numbers: T) -> Self {
        Self(numbers.as_ref().to_vec())
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [number] => number.serialize(serializer),
            numbers => numbers.serialize(serializer),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u32::to_string).collect::<Vec<_>>().join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_and_searched_settings_are_possible() {
        let all = knobs();
        assert!(all.len() > 1);
        for knob in all {
            for precision in [Precision::F64, Precision::F32] {
                let usual = Setting::from((knob.usual)(precision));
                assert_eq!(knob.read(&usual.to_string()).unwrap(), usual, "{}", knob.name);
                assert_eq!(knob.setting(&Knobs::new(), precision), usual, "{}", knob.name);
            }
            for text in knob.searched {
                assert_eq!(knob.read(text).unwrap().to_string(), *text, "{}", knob.name);
            }
            let zero = ["0"].into_iter().filter(|_| !(knob.is_possible)(&[0]));
            for text in ["", "x", "-1", "1x", "1x1x1x1", "99999999999", "2.5"].into_iter().chain(zero) {
                let refusal = knob.read(text).unwrap_err();
                assert!(!refusal.message.is_empty() && refusal.help.is_some(), "{} {text}", knob.name);
            }
        }
    }
}
