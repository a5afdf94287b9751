//! Whether what is measured is the program: its first steps, beside the interpreter's, which cuts nothing.

use super::Scaling;
use crate::array::Data;
use crate::error::{Error, Result};
use crate::job::{Checked, Ready};
use crate::mesh::program::measure::{COMPARED as COMPARED_OVER_MESHES, Results, difference};
use crate::program::measure::COMPARED;
use crate::verify::mesh::Expected;
use crate::verify::program::Reference;
use std::sync::Arc;

/// What the interpreter makes of the first steps, and how many these are.
pub(super) struct Truth {
    pub times: usize,
    pub outputs: Outputs,
}

/// What its outputs hold then.
pub(super) enum Outputs {
    OnGrid(Reference),
    OverMesh(Results),
}

impl Scaling<'_> {
    /// What the interpreter makes of the first steps, if anything is compared.
    ///
    /// # Errors
    /// There is not enough memory, or the comparison would prove nothing.
    pub(super) fn truth(&self, ready: &Ready) -> Result<Option<Truth>> {
        if !self.asked.method.verify {
            return Ok(None);
        }
        let times = match &ready.checked {
            Checked::Grid(_) => COMPARED,
            Checked::Mesh(_) => COMPARED_OVER_MESHES as usize,
        };
        let outputs = match ready.checked.with_times(times) {
            Checked::Grid(problem) => {
                let reference = Reference::new(Arc::unwrap_or_clone(problem), &|_| {})?;
                reference.check_worth()?;
                Outputs::OnGrid(reference)
            }
            Checked::Mesh(problem) => {
                let expected = Expected::new(&problem)?;
                expected.check_worth(&problem)?;
                let variables = &problem.program.program.variables;
                let named = expected.outputs().map(|(id, data)| (variables[id].name.clone(), data.clone()));
                Outputs::OverMesh(named.collect())
            }
        };
        Ok(Some(Truth { times, outputs }))
    }

    /// Sees to it that the first steps are the interpreter's, bit for bit.
    ///
    /// # Errors
    /// They are not, or a device fails.
    pub(super) fn compare(&self, ready: &Ready, devices: usize, truth: Option<&Truth>) -> Result<()> {
        let Some(Truth { times, outputs }) = truth else { return Ok(()) };
        let mut run = Self::repeated(ready, devices, *times).start_on(self.platform.clone())?;
        run.finish()?;
        let held = |name: &str| -> Result<Option<Data>> { Ok(run.held(name)?.map(|array| array.data)) };
        let wrong = match outputs {
            Outputs::OnGrid(reference) => {
                let fields = reference.problem.outer.stencil.fields.iter();
                let found = fields.map(|(_, own)| if own.role.is_written() { held(&own.name) } else { Ok(None) });
                let found = found.collect::<Result<Vec<_>>>()?;
                reference.mismatches(&found).first().map(ToString::to_string)
            }
            Outputs::OverMesh(expected) => {
                let found = expected.iter().filter_map(|(name, _)| match held(name) {
                    Ok(data) => Some(Ok((name.clone(), data?))),
                    Err(error) => Some(Err(error)),
                });
                let found = found.collect::<Result<Results>>()?;
                if found.len() < expected.len() {
                    return Err(Error::check(format!("on {devices} an output has no value")));
                }
                difference(expected, &found)
            }
        };
        match wrong {
            None => Ok(()),
            Some(wrong) => {
                Err(Error::check(format!("on {devices} {}: {wrong}", if devices == 1 { "device" } else { "devices" }))
                    .help("`stencilc verify --gpus` finds what is wrong; --no-verify measures all the same"))
            }
        }
    }
}
