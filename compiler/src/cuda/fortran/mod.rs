//! A launcher from Fortran: a module with a subroutine that takes arrays as Fortran has them, and finds out by itself how they lie.

mod names;

use super::host::Host;
use super::on_cpu::plain;
use super::{Built, Parameter, again, made, render};
use crate::diagnostic::Refusal;
use crate::ir::scalar::Value;
use crate::ir::{self, Kind, Levels, Param, Place, Precision, Stored};
use crate::kernel::Meaning;
use crate::names::Identifier;
use crate::plan::{KnownGrid, Plan};
use crate::text::Comment;
pub use names::Renamed;
use names::{Names, Scope};
use serde::Serialize;
use std::collections::BTreeMap;

/// The skeleton of a module.
pub(super) const TEMPLATE: &str = include_str!("../../../../templates/fortran.f90.tera");

/// A module.
#[derive(Clone, Debug)]
pub struct Fortran {
    /// Its text.
    pub text: String,
    /// What it is called.
    pub module: String,
    /// What is called in another way there than in the stencil, since Fortran does not tell capitals from small letters, and means
    /// something by some words.
    pub renamed: Vec<Renamed>,
}

/// A line of the struct of arguments.
#[derive(Serialize)]
struct Member {
    declared: String,
    meaning: Comment,
}

/// An array that the subroutine takes.
#[derive(Serialize)]
struct Field {
    name: String,
    c_type: &'static str,
    intent: &'static str,
    /// `:, :, :`
    colons: String,
    /// Which axes it has, as numbers: `1, 2, 3`.
    axes: String,
    /// Bytes of an element.
    bytes: usize,
    /// Whether it is written, as a constant of Fortran.
    written: &'static str,
    /// The addresses of its first element, and of the second along each axis.
    places: String,
    /// The indices of its first element.
    first: String,
    meaning: Comment,
}

/// A number that the subroutine takes.
#[derive(Serialize)]
struct Number {
    name: String,
    c_type: &'static str,
    /// Its value as the struct holds it.
    value: String,
    /// Its value if none is given.
    default: Option<String>,
    meaning: Comment,
}

#[derive(Serialize)]
struct Texts {
    head: Vec<Comment>,
    doc: Vec<Comment>,
    stem: Identifier,
    module: String,
    procedure: String,
    args: String,
    launch: String,
    in_queue: String,
    message: String,
    c_launch: Identifier,
    c_in_queue: Identifier,
    c_message: Identifier,
    members: Vec<Member>,
    fields: Vec<Field>,
    params: Vec<Number>,
    dummies: String,
    on_device: String,
    /// The members that are sizes.
    sizes: BTreeMap<&'static str, String>,
    /// The extents that it was built for, if for one grid alone.
    known: Option<String>,
}

/// The widest that lists become.
const WIDTH: usize = 100;

/// The longest name of a stencil: what C calls its launcher stands in a line.
const LONGEST: usize = 80;

/// The module of the launcher that was built of a plan. `defaults` are the values of parameters that have one, by their names; `words`
/// are options that `build` was given beside those of the kernel.
///
/// # Errors
/// The plan's arrays are no plain ones, or none has columns; or a template is broken, which is a fault of the compiler.
pub fn fortran(
    plan: &Plan,
    built: &Built,
    defaults: &BTreeMap<String, Value>,
    words: &str,
) -> Result<Fortran, Refusal> {
    plain(plan)?;
    let stencil = &plan.stencil;
    if stencil.name.len() > LONGEST {
        return Err(Refusal::new(format!(
            "the name of stencil `{}` is longer than a line of Fortran has room for",
            stencil.name
        ))
        .help("give it a name of at most 80 characters"));
    }
    if !stencil.fields.iter().any(|(_, field)| field.place.horizontal) {
        return Err(Refusal::new(format!(
            "no field of stencil `{}` has columns, so no array says how many there are",
            stencil.name
        ))
        .help("call the launcher by its header"));
    }
    let kernel = &built.kernel;
    let host = Host::new(plan, kernel);
    let mut names = Names::new();
    let procedure = names.of_procedure(&stencil.name);
    let [module, args, launch, in_queue, message] =
        ["stencil", "args", "launch", "in_queue", "message"].map(|what| names.ours(&format!("{procedure}_{what}")));
    let (mut members, mut fields, mut params) = (Vec::new(), Vec::new(), Vec::new());
    for own in &kernel.parameters {
        match own.meaning {
            Meaning::Input(id) | Meaning::Output(id) => {
                let is_written = matches!(own.meaning, Meaning::Output(_));
                let field = &stencil.fields[id];
                if field.place == Place::NOWHERE {
                    return Err(Refusal::new(format!(
                        "field `{}` of stencil `{}` has no axes",
                        field.name, stencil.name
                    )));
                }
                // What an array of an `inout` field holds afterwards has a name of its own in C, too.
                let is_new = is_written && field.role.is_read();
                let said = if is_new { &*own.name } else { &field.name };
                let name = names.of(Scope::Field, &own.name, said);
                let way = match (is_written, is_new) {
                    (true, true) => "out, not the array that is read",
                    (true, false) => "out",
                    (false, _) => "in",
                };
                let doc = field.doc.first_comment();
                let meaning =
                    Comment::new(format!("{way}{}{}{doc}", field.place, if doc.is_empty() { "" } else { ": " }));
                members.push(Member { declared: format!("type(c_ptr) :: {name}"), meaning: meaning.clone() });
                fields.push(array(name, field, plan.choices.precision, is_written, meaning));
            }
            Meaning::Param(id) => {
                let param = &stencil.params[id];
                let name = names.of(Scope::Parameter, &own.name, &param.name);
                let default = defaults.get(&param.name).copied();
                written(param, own, default)?;
                let number = number(name, param, own, default);
                let c_type = if param.kind == Kind::Bool { "integer(c_int)" } else { number.c_type };
                members
                    .push(Member { declared: format!("{c_type} :: {}", number.name), meaning: number.meaning.clone() });
                params.push(number);
            }
            _ => {}
        }
    }
    let mut sizes = BTreeMap::new();
    if plan.known_grid.is_none() {
        let c_types =
            [("ni", "c_int"), ("nj", "c_int"), ("nk", "c_int"), ("plane", "c_long_long"), ("row", "c_long_long")];
        for (size, kind) in c_types {
            let name = names.of(Scope::Ours, host.member(size), size);
            let meaning = match size {
                "ni" | "nj" => format!("columns along {}, halo included", &size[1..]),
                "nk" => "levels".to_owned(),
                "plane" => "elements from a level to the next".to_owned(),
                _ => "elements from a row to the next".to_owned(),
            };
            members.push(Member { declared: format!("integer({kind}) :: {name}"), meaning: Comment::new(meaning) });
            sizes.insert(size, name);
        }
    }
    let optional = ["async", "stream", "ierr", "message"].map(str::to_owned);
    let mut needed: Vec<String> = fields.iter().map(|own| own.name.clone()).collect();
    let (set, open): (Vec<&Number>, Vec<&Number>) = params.iter().partition(|own| own.default.is_none());
    needed.extend(set.into_iter().chain(open).map(|own| own.name.clone()));
    let dummies = list(needed.into_iter().chain(optional), "&\n    ");
    let on_device = list(fields.iter().map(|own| own.name.clone()), "&\n      !$acc& ");
    let c = host.texts();
    let texts = Texts {
        head: head(plan, words),
        doc: stencil.doc.comments().filter(|line| !line.is_empty()).collect(),
        stem: c.stem,
        procedure,
        args,
        launch,
        in_queue,
        message,
        c_launch: c.launch,
        c_in_queue: c.in_queue,
        c_message: c.message,
        members,
        fields,
        params,
        dummies,
        on_device,
        sizes,
        known: plan.known_grid.as_ref().map(|KnownGrid { grid, .. }| format!("{}, {}, {}", grid.ni, grid.nj, grid.nk)),
        module: module.clone(),
    };
    Ok(Fortran { text: render("fortran.f90.tera", &texts)?, module, renamed: names.renamed() })
}

/// What a module is, and how to make it again.
fn head(plan: &Plan, words: &str) -> Vec<Comment> {
    let choices = &plan.choices;
    let (access, storage, precision) = (&choices.access, &choices.storage, choices.precision.name());
    vec![
        Comment::new(format!(
            "{}, called from Fortran: {access} access, {storage} storage, {precision}.",
            plan.stencil.told()
        )),
        made(&format!("{}{words}", again(plan))),
    ]
}

/// An array of a field.
fn array(name: String, field: &ir::Field, precision: Precision, is_written: bool, meaning: Comment) -> Field {
    let mut axes = if field.place.horizontal { vec!["1", "2"] } else { Vec::new() };
    match field.place.levels {
        Levels::None => {}
        Levels::Full => axes.push("3"),
        Levels::Interfaces => axes.push("4"),
    }
    let of_real = match precision {
        Precision::F32 => "real(c_float)",
        Precision::F64 => "real(c_double)",
    };
    let c_type = match field.stored {
        Stored::Real => of_real,
        Stored::F32 => "real(c_float)",
        Stored::F64 => "real(c_double)",
        Stored::Int => "integer(c_int)",
        Stored::Bool => "logical(c_bool)",
    };
    let first = vec!["1"; axes.len()].join(", ");
    let second = |along: usize| {
        let index = |axis: usize| match axis == along {
            true => format!("min(2, size({name}, {})) &\n          ", axis + 1),
            false => "1".to_owned(),
        };
        (0..axes.len()).map(index).collect::<Vec<_>>().join(", ")
    };
    let places = std::iter::once(first.clone()).chain((0..axes.len()).map(second));
    let places: Vec<String> = places.map(|index| format!("c_loc({name}( &\n          {index}))")).collect();
    Field {
        c_type,
        intent: if is_written { "inout" } else { "in" },
        colons: vec![":"; axes.len()].join(", "),
        bytes: field.stored.bytes(precision),
        written: if is_written { ".true." } else { ".false." },
        places: places.join(", &\n        "),
        axes: axes.join(", "),
        first,
        meaning,
        name,
    }
}

/// Refuses a value that no number of Fortran is written as.
fn written(param: &Param, own: &Parameter, default: Option<Value>) -> Result<(), Refusal> {
    match default {
        Some(Value::Real(value))
            if !(if own.c_type == "float" { f64::from(value as f32) } else { value }).is_finite() =>
        {
            Err(Refusal::new(format!(
                "the parameter `{}` is {value:?} unless it is given, which is not finite",
                param.name
            ))
            .help("give it a number in the stencil, such as 0.5; or none, so that callers have to"))
        }
        _ => Ok(()),
    }
}

/// A parameter.
fn number(name: String, param: &Param, own: &Parameter, default: Option<Value>) -> Number {
    let is_single = own.c_type == "float";
    let (c_type, value) = match param.kind {
        Kind::Real if is_single => ("real(c_float)", name.clone()),
        Kind::Real => ("real(c_double)", name.clone()),
        Kind::Int => ("integer(c_int)", name.clone()),
        Kind::Bool => ("logical", format!("merge(1_c_int, 0_c_int, {name})")),
    };
    let default = default.map(|value| match value {
        Value::Bool(value) => format!("{}_c_int", i32::from(value)),
        // To Fortran, the smallest number is out of range where it is written down.
        Value::Int(i32::MIN) => {
            format!("-{}_c_int\n      stencilc_args%{name} = stencilc_args%{name} - 1_c_int", i32::MAX)
        }
        Value::Int(value) => format!("{value}_c_int"),
        Value::Real(value) if is_single => format!("{:e}_c_float", value as f32),
        Value::Real(value) => format!("{value:e}_c_double"),
    });
    let doc = param.doc.first_comment();
    let meaning = if doc.is_empty() { Comment::new("a parameter") } else { doc };
    Number { name, c_type, value, default, meaning }
}

/// Words in lines of a readable length, which `continued` joins.
fn list(words: impl Iterator<Item = String>, continued: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in words {
        if !text.is_empty() {
            text.push_str(", ");
            if width + word.len() > WIDTH {
                text.push_str(continued);
                width = 0;
            }
        }
        width += word.len() + 2;
        text.push_str(&word);
    }
    text
}
