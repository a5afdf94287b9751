//! What runs programs, and what runs over meshes, when others call it: libstencilc, since `build` makes no launcher of such. Its users are
//! shown the lines to write.

use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::{Place, Role};
use stencilc_runtime::job::Subject;

/// The lines that run something by libstencilc from Fortran: what it reads is given, and what it writes is asked for.
pub fn in_fortran(file: &str, subject: &Subject) -> String {
    let name = subject.name();
    let given: Vec<String> = fields(subject, Role::is_read).map(|own| format!("given(\"{own}\", {own})")).collect();
    let (given, mesh) = (given.join(", "), if is_over_mesh(subject) { ", mesh=mesh" } else { "" });
    let mut lines = vec![format!("call own%load(\"{file}\", \"{name}\")")];
    if is_over_mesh(subject) {
        lines.push("call mesh%read(\"mesh.npz\")".to_owned());
    }
    lines.push(format!("call run%begin(own, [{given}]{mesh})"));
    lines.push("call run%step()".to_owned());
    lines.extend(fields(subject, Role::is_written).map(|own| format!("call run%get(\"{own}\", {own})")));
    shown("libstencilc runs it, by the module c/fortran/stencilc.f90", &lines)
}

/// The same from C.
pub fn in_c(file: &str, subject: &Subject) -> String {
    let name = subject.name();
    let count = fields(subject, Role::is_read).count();
    let mut lines = vec![format!("stencilc_load(\"{file}\", \"{name}\", &own);")];
    let mesh = if is_over_mesh(subject) { "mesh" } else { "NULL" };
    if is_over_mesh(subject) {
        lines.push("stencilc_mesh_read(\"mesh.npz\", &mesh);".to_owned());
    }
    lines.push(format!("stencilc_run_begin(own, {mesh}, arrays, {count}, &run);"));
    lines.push("stencilc_run_step(run, 10, &done);".to_owned());
    lines.extend(fields(subject, Role::is_written).map(|own| format!("stencilc_run_get(run, &{own});")));
    shown("libstencilc runs it, by the header c/include/stencilc.h", &lines)
}

fn shown(who: &str, lines: &[String]) -> String {
    format!("{who} (docs/callers.md, \"Programs and meshes\"):\n    {}", lines.join("\n    "))
}

fn is_over_mesh(subject: &Subject) -> bool {
    match subject {
        Subject::Mesh(_) => true,
        Subject::Grid(_) => false,
    }
}

/// The names of arrays; single numbers are asked for in another way.
fn fields(subject: &Subject, has: fn(Role) -> bool) -> impl Iterator<Item = &str> {
    let is_array = |own: &Variable| own.place != Place::NOWHERE;
    subject.fields().filter(move |(own, role)| has(*role) && is_array(own)).map(|(own, _)| own.name.as_str())
}
