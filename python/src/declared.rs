//! What texts declare, as data: fields and parameters of stencils and programs.

use crate::error::{Told, apart, caught, raised, told, wrong, wrong_text};
use crate::how::How;
use crate::lending::Pool;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::diagnostic::{Failure, Severity, guess};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{self, Handle, Kind, Levels, Precision, Role, Stencil};
use stencilc_compiler::lower::Lowered;
use stencilc_compiler::source::Source;
use stencilc_runtime::job::Subject as Of;
use stencilc_runtime::mesh::program::alone;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Cast, Drawing, Error};

/// A text that was read and is right.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Text {
    pub source: Arc<Source>,
    lowered: Lowered,
}

/// Reads the text of a file: a path, or the name of a stencil that comes along.
#[pyfunction]
pub fn open(py: Python<'_>, file: &str) -> PyResult<Text> {
    caught(py, || Text::of(py, stencilc::texts::open(file)))
}

/// Reads a text that is in memory.
#[pyfunction]
pub fn in_memory(py: Python<'_>, text: &str, name: &str) -> PyResult<Text> {
    caught(py, || Text::of(py, stencilc::texts::in_memory(name, text)))
}

impl Text {
    fn of(py: Python<'_>, source: Result<Source, Error>) -> PyResult<Self> {
        let source = source.map_err(|error| raised(py, &error))?;
        let lowered = py.detach(|| stencilc_compiler::check(&source));
        match lowered.diagnostics.iter().any(|own| own.severity == Severity::Error) {
            true => Err(wrong_text(py, &source, &lowered.diagnostics)),
            false => Ok(Self { source: Arc::new(source), lowered }),
        }
    }
}

#[pymethods]
impl Text {
    #[getter]
    fn name(&self) -> &str {
        &self.source.name
    }

    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// What there is to tell of it.
    #[getter]
    fn warnings(&self) -> Vec<Told> {
        told(&self.source, &self.lowered.diagnostics)
    }

    /// Its stencils: on grids, then over meshes.
    fn stencils(&self) -> Vec<Subject> {
        let on_grids = self.lowered.stencils.iter().map(|own| {
            let (program, _) = ir::called::once(own, false);
            Subject::new(&self.source, Of::Grid(program), Some(own.clone()), false)
        });
        let over_meshes = self.lowered.mesh_stencils.iter();
        let over_meshes = over_meshes.map(|own| Subject::new(&self.source, Of::Mesh(alone(own)), None, false));
        on_grids.chain(over_meshes).collect()
    }

    /// Its programs: on grids, then over meshes.
    fn programs(&self) -> Vec<Subject> {
        let on_grids = self.lowered.programs.iter().cloned().map(Of::Grid);
        let all = on_grids.chain(self.lowered.mesh_programs.iter().cloned().map(Of::Mesh));
        all.map(|own| Subject::new(&self.source, own, None, true)).collect()
    }
}

/// A stencil or a program.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Subject {
    pub source: Arc<Source>,
    pub of: Of,
    /// The stencil on a grid that it is.
    pub stencil: Option<Stencil>,
    is_program: bool,
    pub pool: Pool,
}

/// A parameter: name, kind, value if none is given, documentation.
type Parameter = (String, &'static str, Option<Default>, String);

/// A field: name, role, axes, type, documentation, range of what is drawn.
type Declared = (String, &'static str, Vec<String>, &'static str, String, Option<(f64, f64)>);

impl Subject {
    fn new(source: &Arc<Source>, of: Of, stencil: Option<Stencil>, is_program: bool) -> Self {
        Self { source: Arc::clone(source), of, stencil, is_program, pool: Pool::default() }
    }

    /// `stencil`, `program`.
    pub fn what(&self) -> &'static str {
        if self.is_program { "program" } else { "stencil" }
    }

    /// That there is no field or parameter of a name.
    pub fn unknown(&self, py: Python<'_>, name: &str) -> PyErr {
        let names: Vec<&str> = self.of.fields().map(|(own, _)| own.name.as_str()).collect();
        let params: Vec<&str> = self.of.params().map(|own| own.name.as_str()).collect();
        let help = match guess(name, names.iter().chain(&params).copied()) {
            Some(guess) => format!("did you mean `{guess}`?"),
            None => {
                let of_params =
                    if params.is_empty() { String::new() } else { format!("; its parameters {}", params.join(", ")) };
                format!("its fields are {}{of_params}", names.join(", "))
            }
        };
        wrong(py, format!("{} `{}` has no field or parameter `{name}`", self.what(), self.of.name()), help)
    }

    /// The value of a parameter as a text.
    pub fn setting(&self, param: &ir::Param, value: &Bound<'_, PyAny>) -> PyResult<String> {
        let py = value.py();
        let none = |expected: &str| {
            let given = value.repr().map_or_else(|_| "what is given".to_owned(), |own| own.to_string());
            let shown: String = given.chars().take(60).collect();
            wrong(py, format!("{shown} is no value for the parameter `{}`", param.name), format!("give {expected}"))
        };
        match param.kind {
            // As people write it: 1e300, not 301 digits.
            Kind::Real => {
                value.extract::<f64>().map(|own| format!("{own:?}")).map_err(|_| none("a number such as 0.5"))
            }
            Kind::Int => value
                .extract::<i64>()
                .map(|own| own.to_string())
                .map_err(|_| none("a whole number of 32 bits such as 3")),
            Kind::Bool => value.extract::<bool>().map(|own| own.to_string()).map_err(|_| none("True or False")),
        }
    }
}

/// The axes of a field, slowest first.
fn axes(own: &Variable, of: &Of) -> Vec<String> {
    let levels = match own.place.levels {
        Levels::None => None,
        Levels::Full => Some("k".to_owned()),
        Levels::Interfaces => Some("k+1".to_owned()),
    };
    let mut all: Vec<String> = levels.into_iter().collect();
    match (of, own.place.home) {
        (Of::Mesh(program), Some(home)) => {
            all.push(program.mesh.sets[home.set].name.clone());
            all.extend(home.map.map(|map| program.mesh.maps[map].name.clone()));
            if home.parts > 1 {
                all.push(home.parts.to_string());
            }
        }
        (Of::Grid(_), _) if own.place.horizontal => all.extend(["j".to_owned(), "i".to_owned()]),
        _ => {}
    }
    all
}

/// What fields are called that are used like this.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::In => "in",
        Role::Out => "out",
        Role::InOut => "inout",
        Role::Carried => "carried",
        Role::Inc => "inc",
        Role::Reduce => "reduce",
    }
}

/// The value of a parameter, if none is given.
#[derive(IntoPyObject)]
pub enum Default {
    Real(f64),
    Int(i32),
    Bool(bool),
}

#[pymethods]
impl Subject {
    #[getter]
    fn name(&self) -> &str {
        self.of.name()
    }

    #[getter]
    fn doc(&self) -> &str {
        self.of.program().doc.as_told()
    }

    #[getter]
    fn is_program(&self) -> bool {
        self.is_program
    }

    /// The mesh over which it runs, if it runs over one.
    #[getter]
    fn over(&self) -> Option<&str> {
        match &self.of {
            Of::Mesh(program) => Some(&program.mesh.name),
            Of::Grid(_) => None,
        }
    }

    fn fields(&self) -> Vec<Declared> {
        let one = |(own, role): (&Variable, Role)| {
            let doc = own.doc.as_told().to_owned();
            (own.name.clone(), role_name(role), axes(own, &self.of), own.stored.name(), doc, own.range)
        };
        self.of.fields().map(one).collect()
    }

    /// Names, kinds, values if none is given, and documentation.
    fn params(&self, py: Python<'_>) -> PyResult<Vec<Parameter>> {
        let numbers = &self.of.program().numbers;
        // The parameters alone, without fields, whose arrays would be made.
        let bare = Stencil { params: numbers.params.clone(), defs: numbers.defs.clone(), ..Stencil::default() };
        let problem = Problem::new(Request {
            stencil: &bare,
            precision: Precision::F64,
            contract: true,
            grid: Some(Grid::rows(1, 1, 1)),
            adjacency: None,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 0,
            cast: Cast::Exact,
            drawing: Drawing::Everything,
        });
        let problem = problem.map_err(|error| raised(py, &error))?;
        let value = |name: &str| {
            let (id, _) = problem.stencil.params.iter().find(|(_, own)| own.name == name)?;
            let is_known = !problem.drawn.iter().any(|own| own == name);
            problem.params.get(id.index()).filter(|_| is_known).map(|value| match value {
                Value::Real(own) => Default::Real(*own),
                Value::Int(own) => Default::Int(*own),
                Value::Bool(own) => Default::Bool(*own),
            })
        };
        let kind = |kind: Kind| match kind {
            Kind::Real => "real",
            Kind::Int => "int",
            Kind::Bool => "bool",
        };
        let one = |own: &ir::Param| (own.name.clone(), kind(own.kind), value(&own.name), own.doc.as_told().to_owned());
        Ok(self.of.params().map(one).collect())
    }

    /// The text that it stands in.
    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// The CUDA of a stencil on a grid, with its launcher.
    fn cuda(&self, py: Python<'_>, how: &How) -> PyResult<String> {
        let (choices, _) = how.kernel();
        let choices = match &self.stencil {
            Some(stencil) => choices.suiting(stencil),
            None => {
                let help = "`explain()` tells of the kernels of programs, and of what runs over a mesh";
                return Err(wrong(
                    py,
                    format!("`{}` is no stencil on a grid: it has no kernel of its own", self.of.name()),
                    help,
                ));
            }
        };
        apart(py, || {
            let built = stencilc_compiler::compile(&self.source, Some(self.of.name()), &choices, None);
            built.map(|own| own.source).map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal.into(),
                Failure::Wrong { rendered, .. } => Error::input(rendered),
            })
        })
    }

    /// What it reads, computes and costs; options are those of `stencilc explain`.
    fn explain(&self, py: Python<'_>, options: Vec<String>) -> PyResult<String> {
        let options = self.named(options);
        apart(py, || stencilc::texts::explained(&self.source, &options))
    }
}
