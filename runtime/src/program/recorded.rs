//! Which buffers a program on its way asks for, and whether loops that are recorded leave the same bits.

use super::cpu::Interpreter;
use super::tests::{fusible, problem, program, same};
use super::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{FieldId, Precision};
use stencilc_compiler::program::{Fuse, Fusing};

/// Counts what it is asked for, and records it if it may.
struct Recorder<'a> {
    inner: Interpreter<'a>,
    records: bool,
    loads: Cell<usize>,
    computed: Cell<usize>,
    recording: RefCell<Option<Vec<Asked>>>,
}

type Held = Rc<RefCell<Data>>;

/// What it was asked for.
enum Asked {
    Fill(VariableId, Held),
    Copy(Held, Held),
    Compute(usize, Vec<(FieldId, Held)>, Vec<(FieldId, Held)>),
}

impl<'a> Recorder<'a> {
    fn new(problem: &'a ProgramProblem, records: bool) -> Self {
        let [loads, computed] = [Cell::new(0), Cell::new(0)];
        Self { inner: Interpreter::new(problem), records, loads, computed, recording: RefCell::new(None) }
    }

    fn ask(&self, asked: Asked) -> Result<()> {
        match self.recording.borrow_mut().as_mut() {
            Some(recording) => recording.push(asked),
            None => self.answer(&asked)?,
        }
        Ok(())
    }

    fn answer(&self, asked: &Asked) -> Result<()> {
        match asked {
            Asked::Fill(variable, buffer) => self.inner.fill_halo(*variable, buffer),
            Asked::Copy(from, to) => self.inner.copy(from, to),
            Asked::Compute(stage, reads, writes) => {
                let reads: Vec<_> = reads.iter().map(|(field, buffer)| (*field, &**buffer)).collect();
                let writes: Vec<_> = writes.iter().map(|(field, buffer)| (*field, &**buffer)).collect();
                self.inner.compute(*stage, 1, &reads, &writes)
            }
        }
    }
}

impl Backend for Recorder<'_> {
    type Buffer = Held;
    type Recording = Vec<Asked>;

    fn load(&self, variable: VariableId, data: &Data) -> Result<Held> {
        assert!(self.recording.borrow().is_none(), "a buffer amid a recording");
        self.loads.set(self.loads.get() + 1);
        self.inner.load(variable, data).map(Rc::new)
    }
    fn read(&self, variable: VariableId, buffer: &Held) -> Result<Data> {
        self.inner.read(variable, buffer)
    }
    fn fill_halo(&self, variable: VariableId, buffer: &Held) -> Result<()> {
        self.ask(Asked::Fill(variable, Rc::clone(buffer)))
    }
    fn copy(&self, from: &Held, to: &Held) -> Result<()> {
        self.ask(Asked::Copy(Rc::clone(from), Rc::clone(to)))
    }
    fn compute(
        &self,
        stage: usize,
        times: usize,
        reads: &[(FieldId, &Held)],
        writes: &[(FieldId, &Held)],
    ) -> Result<()> {
        assert!(times == 1 || self.recording.borrow().is_none(), "a loop amid a recording");
        self.computed.set(self.computed.get() + 1);
        let held = |pairs: &[(FieldId, &Held)]| {
            pairs.iter().map(|(field, buffer)| (*field, Rc::clone(buffer))).collect::<Vec<_>>()
        };
        self.ask(Asked::Compute(stage, held(reads), held(writes)))
    }
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Vec<Asked>>> {
        if !self.records {
            return Ok(None);
        }
        assert!(self.recording.replace(Some(Vec::new())).is_none(), "a recording amid another");
        work()?;
        Ok(self.recording.take())
    }
    fn replay(&self, recording: &Vec<Asked>) -> Result<()> {
        assert!(self.recording.borrow().is_none(), "a recording amid another");
        recording.iter().try_for_each(|asked| self.answer(asked))
    }
}

#[test]
fn buffers_rotate() {
    for (text, grid) in fusible() {
        let problem = problem(&program(&text), grid, Precision::F64, &[("n", "3")]).unwrap();
        let longer = problem.with_times(30);
        let loads = |problem: &ProgramProblem| {
            let backend = Recorder::new(problem, false);
            started(problem, &backend).unwrap().run(None, &mut |_, _| Ok(())).unwrap();
            backend.loads.get()
        };
        assert_eq!(loads(&problem), loads(&longer), "{text}");
    }
}

/// Loops that are one launch are not recorded, nor are those around them.
#[test]
fn loops_of_one_launch_are_not_recorded() {
    let text = "
        program nested {
            inout a, q; param n: int = 40
            boundary { i: periodic, j: periodic }
            repeat n { repeat 5 { a = blur(a) }; q = mix(q, a); repeat 6 { q = blur(q) } }
        }
        stencil blur { in a; out b; b = 0.25*(a[i-1] + a[i+1] + a[j-1] + a[j+1]) }
        stencil mix { in q, a; out r; r = 0.5*q + 0.5*a }
    ";
    let problem = problem(&program(text), Grid::rows(8, 8, 2), Precision::F64, &[]).unwrap();
    let stages = [false, true].map(|whole| {
        let fusing = Fusing { fuse: Fuse::Everything, times: 1, wraps: false, whole };
        let own = ProgramProblem { staged: problem.staged.fused(fusing), ..problem.clone() };
        let backend = Recorder::new(&own, true);
        started(&own, &backend).unwrap().run(None, &mut |_, _| Ok(())).unwrap();
        backend.computed.get()
    });
    // Three launches each time, or recordings.
    assert_eq!(stages[1], 3 * 40);
    assert!(stages[0] < 12 * 40, "{stages:?}");
}

/// Loops that are recorded leave the same bits, whenever one looks.
#[test]
fn recorded_loops_equal_others() {
    for (text, grid) in fusible() {
        let original = problem(&program(&text), grid, Precision::F64, &[]).unwrap().with_times(300);
        for times in [1, 3] {
            let fusing = Fusing { fuse: Fuse::Everything, times, wraps: false, whole: false };
            let problem = ProgramProblem { staged: original.staged.fused(fusing), ..original.clone() };
            for every in [None, Some(50), Some(7)] {
                let [plain, recorded] = [false, true].map(|records| {
                    let backend = Recorder::new(&problem, records);
                    let mut driver = started(&problem, &backend).unwrap();
                    let mut seen = Vec::new();
                    let mut done = 0;
                    driver
                        .run(every, &mut |driver, times| {
                            done += times;
                            if every.is_some_and(|every| done % every == 0) {
                                seen.extend(results(&problem, driver)?);
                            }
                            Ok(())
                        })
                        .unwrap();
                    assert_eq!(done, 300 * problem.staged.steps.iter().filter(|step| step.times() > 0).count() as u64);
                    seen.extend(results(&problem, &driver).unwrap());
                    (seen, backend.computed.get())
                });
                same(&recorded.0, &plain.0, &format!("{text} {times} {every:?}"));
                let (all, asked) = (plain.1, recorded.1);
                // Where steps are left over, buffers may not come back.
                let has_rest = every == Some(7) || every.is_some() && times > 1;
                assert!(has_rest || 2 * asked < all, "{text} {times} {every:?}: {asked} of {all}");
            }
        }
    }
}
