//! How something is computed, as far as its numbers do not tell: the device, the kernel, what is drawn.

use crate::error::{caught, raised, wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{Choices, Open};
use stencilc_runtime::device::MOST_DEVICES;
use stencilc_runtime::job::Job;
use stencilc_runtime::{Cast, Device, Drawing};

/// Options of `using`.
#[pyclass(frozen, module = "stencilc._core")]
#[derive(Default)]
pub struct How {
    pub device: Option<Device>,
    pub precision: Option<Precision>,
    pub levels: Option<usize>,
    /// On how many devices.
    gpus: Option<usize>,
    /// Whether the processes that were started together compute it together.
    pub processes: bool,
    /// Whether what was tuned is not taken.
    pub untuned: bool,
    seed: u64,
    cast: bool,
    drawing: Option<Drawing>,
    /// The kernel that is chosen, and the words that chose it.
    kernel: Option<(Choices, Open)>,
    words: Vec<String>,
}

#[pymethods]
impl How {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        caught(py, || {
            let mut how = Self::default();
            for (name, value) in options {
                how.take(&name.extract::<String>()?, &value)?;
            }
            if !how.words.is_empty() {
                how.kernel = Some(stencilc::texts::choices(&how.words).map_err(|error| raised(py, &error))?);
            }
            Ok(how)
        })
    }

    /// The options that choose a kernel, as the command line takes them.
    #[getter]
    fn words(&self) -> Vec<String> {
        self.words.clone()
    }

    #[getter]
    fn precision(&self) -> Option<&'static str> {
        self.precision.map(Precision::name)
    }
}

impl How {
    fn take(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let no_value =
            |expected: &str| wrong(py, format!("{value} is no value for `{name}`"), format!("give {expected}"));
        match name {
            "device" => {
                let text: String = value.extract().map_err(|_| no_value("a name such as \"cpu\""))?;
                self.device =
                    Some(text.parse().map_err(|help: String| wrong(py, format!("there is no device `{text}`"), help))?);
            }
            "precision" => {
                let text = value.extract::<String>().unwrap_or_default();
                let known = [Precision::F32, Precision::F64].into_iter().find(|own| own.name() == text);
                self.precision = Some(known.ok_or_else(|| no_value("\"f32\" or \"f64\""))?);
            }
            "gpus" => {
                let number = value.extract::<usize>().ok().filter(|own| (1..=MOST_DEVICES).contains(own));
                // Truth values are numbers to Python.
                let number = number.filter(|_| !value.is_instance_of::<PyBool>());
                let help = format!(
                    "a whole number from 1 to {MOST_DEVICES}: on how many GPUs, or in how many parts on the CPU"
                );
                self.gpus = Some(number.ok_or_else(|| no_value(&help))?);
            }
            "levels" => self.levels = Some(value.extract().map_err(|_| no_value("a number of levels"))?),
            "processes" => self.processes = value.extract().map_err(|_| no_value("True or False"))?,
            "untuned" => self.untuned = value.extract().map_err(|_| no_value("True or False"))?,
            "seed" => self.seed = value.extract().map_err(|_| no_value("a whole number from 0 on"))?,
            "cast" => self.cast = value.extract().map_err(|_| no_value("True or False"))?,
            "draw" => {
                self.drawing = match (value.extract::<bool>(), value.extract::<Vec<String>>()) {
                    (Ok(true), _) => Some(Drawing::Inputs),
                    (Ok(false), _) => Some(Drawing::Nothing),
                    (_, Ok(names)) => Some(Drawing::Named(names)),
                    _ => return Err(no_value("True, or a list of names")),
                };
            }
            _ => {
                let option = format!("--{}", name.replace('_', "-"));
                if value.is_instance_of::<PyBool>() {
                    self.words.extend(value.extract::<bool>()?.then_some(option));
                } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
                    let parts = value.try_iter()?.map(|own| Ok(own?.str()?.to_string()));
                    let parts = parts.collect::<PyResult<Vec<String>>>()?;
                    self.words.extend([option, parts.join("x")]);
                } else {
                    self.words.extend([option, value.str()?.to_string()]);
                }
            }
        }
        Ok(())
    }

    /// The kernel that is chosen, or the usual one.
    pub fn kernel(&self) -> (Choices, Open) {
        let (choices, open) = self.kernel.clone().unwrap_or_else(|| (Choices::default(), Open::Kernel));
        let precision = self.precision.unwrap_or(choices.precision);
        (Choices { precision, ..choices }, open)
    }

    /// The job, with all that is said here.
    pub fn of(&self, job: Job, precision: Option<Precision>) -> Job {
        let job = match &self.kernel {
            Some((choices, _)) => job.choices(choices.clone()),
            None => job,
        };
        let precision = self.precision.or(precision).into_iter();
        let job = precision.fold(job, Job::precision);
        let job = self.device.into_iter().fold(job, Job::device);
        let job = self.gpus.into_iter().fold(job, Job::devices);
        let job = self.drawing.clone().into_iter().fold(job, Job::drawing);
        job.seed(self.seed).cast(if self.cast { Cast::Allowed } else { Cast::Exact })
    }

    /// What tells it from others.
    pub fn key(&self) -> String {
        format!("{:?} {:?} {} {}", self.device, self.precision, self.untuned, self.words.join(" "))
    }
}
