//! Temporary.
use stencilc_compiler::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let source = source::Source::new(path.clone(), std::fs::read_to_string(&path).unwrap());
    match parse::parse(&source) {
        Err(d) => print!("{}", diagnostic::render(&[d], &source, false)),
        Ok(file) => {
            let l = lower::lower(&file);
            print!("{}", diagnostic::render(&l.diagnostics, &source, false));
            for s in &l.stencils { ir::verify(s).unwrap();
              let s = plan::prepare(s, ir::Precision::F64, true);
              if std::env::args().len() == 2 { print!("{s}"); continue; }
              let grid = grid::Grid{ni:512,nj:512,nk:64};
              let params: Vec<_> = s.params.iter().map(|(_, p)| match p.default.as_ref().and_then(|b| b.literal()) { Some(ir::Node::Real(x)) => ir::scalar::Value::Real(*x), Some(ir::Node::Int(x)) => ir::scalar::Value::Int(*x), _ => ir::scalar::Value::Int(3) }).collect();
              let region = analysis::region(&s, ir::Precision::F64, grid, &params).unwrap();
              for storage in ["regular", "compressed"] { for access in ["naive", "idxvar", "zloop", "zloop-sliced"] {
                let c = plan::Choices { access: access.into(), storage: storage.into(), ..Default::default() };
                let p = plan::plan(&s, &c, Some(plan::Target{grid, region: &region, levels_known: true})).unwrap();
                let k = cuda::print(&p).unwrap();
                println!("{}", k.text);
              }}
            }
        }
    }
}
