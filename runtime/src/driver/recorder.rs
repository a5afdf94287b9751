//! A backend that records, as a GPU does, on the CPU.

use super::{Arrays, Backend, Computed, Script};
use crate::array::Data;
use crate::error::Result;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::{FieldId, VariableId};

/// Counts what it is asked for, and records it if it may.
pub(crate) struct Recorder<B: Backend> {
    inner: B,
    records: bool,
    /// How many buffers were asked for, and stages.
    pub loads: Cell<usize>,
    pub computed: Cell<usize>,
    recording: RefCell<Option<Vec<Asked<B::Buffer>>>>,
}

/// What it was asked for.
pub(crate) enum Asked<B> {
    Fill(VariableId, Rc<B>),
    Copy(Rc<B>, Rc<B>),
    Compute(Computed, Vec<(FieldId, Rc<B>)>, Vec<(FieldId, Rc<B>)>),
}

impl<B: Backend> Recorder<B> {
    pub fn new(inner: B, records: bool) -> Self {
        let [loads, computed] = [Cell::new(0), Cell::new(0)];
        Self { inner, records, loads, computed, recording: RefCell::new(None) }
    }

    fn ask(&self, asked: Asked<B::Buffer>) -> Result<()> {
        match self.recording.borrow_mut().as_mut() {
            Some(recording) => recording.push(asked),
            None => self.answer(&asked)?,
        }
        Ok(())
    }

    fn answer(&self, asked: &Asked<B::Buffer>) -> Result<()> {
        match asked {
            Asked::Fill(variable, buffer) => self.inner.fill_halo(*variable, buffer),
            Asked::Copy(from, to) => self.inner.copy(from, to),
            Asked::Compute(computed, reads, writes) => {
                let reads: Vec<_> = reads.iter().map(|(field, buffer)| (*field, &**buffer)).collect();
                let writes: Vec<_> = writes.iter().map(|(field, buffer)| (*field, &**buffer)).collect();
                self.inner
                    .compute(&Computed { times: 1, ..computed.clone() }, Arrays { reads: &reads, writes: &writes })
            }
        }
    }
}

impl<B: Backend> Backend for Recorder<B> {
    type Buffer = Rc<B::Buffer>;
    type Recording = Vec<Asked<B::Buffer>>;

    fn script(&self) -> Arc<dyn Script> {
        self.inner.script()
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Rc<B::Buffer>> {
        assert!(self.recording.borrow().is_none(), "a buffer amid a recording");
        self.loads.set(self.loads.get() + 1);
        self.inner.load(variable, data).map(Rc::new)
    }
    fn read(&self, variable: VariableId, buffer: &Rc<B::Buffer>) -> Result<Data> {
        self.inner.read(variable, buffer)
    }
    fn fill_halo(&self, variable: VariableId, buffer: &Rc<B::Buffer>) -> Result<()> {
        self.ask(Asked::Fill(variable, Rc::clone(buffer)))
    }
    fn copy(&self, from: &Rc<B::Buffer>, to: &Rc<B::Buffer>) -> Result<()> {
        self.ask(Asked::Copy(Rc::clone(from), Rc::clone(to)))
    }
    fn compute(&self, computed: &Computed, Arrays { reads, writes }: Arrays<Rc<B::Buffer>>) -> Result<()> {
        assert!(computed.times == 1 || self.recording.borrow().is_none(), "a loop amid a recording");
        self.computed.set(self.computed.get() + 1);
        let held = |pairs: &[(FieldId, &Rc<B::Buffer>)]| {
            pairs.iter().map(|(field, buffer)| (*field, Rc::clone(buffer))).collect::<Vec<_>>()
        };
        self.ask(Asked::Compute(computed.clone(), held(reads), held(writes)))
    }
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Vec<Asked<B::Buffer>>>> {
        if !self.records {
            return Ok(None);
        }
        assert!(self.recording.replace(Some(Vec::new())).is_none(), "a recording amid another");
        work()?;
        Ok(self.recording.take())
    }
    fn replay(&self, recording: &Vec<Asked<B::Buffer>>) -> Result<()> {
        assert!(self.recording.borrow().is_none(), "a recording amid another");
        recording.iter().try_for_each(|asked| self.answer(asked))
    }
}
