use stencilc_compiler::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let source = source::Source::new(path.clone(), std::fs::read_to_string(&path).unwrap());
    match parse::parse(&source) {
        Err(d) => print!("{}", diagnostic::render(&[d], &source, false)),
        Ok(file) => {
            let l = lower::lower(&file);
            print!("{}", diagnostic::render(&l.diagnostics, &source, false));
            for s in &l.stencils { ir::verify(s).unwrap(); print!("{s}"); print!("{}", ir::fold(&ir::contract(s), ir::Precision::F64)); }
        }
    }
}
