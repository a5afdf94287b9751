//! Several GPUs of one host: kernels of one look at the memory of another, and wait until it has computed what they look at.

use cudarc::driver::sys::CUresult;

use super::Gpu;
use super::context::Event;
use super::driver::{cuCtxEnablePeerAccess, cuDeviceCanAccessPeer};
use crate::{Error, Result};

impl Gpu {
    /// Lets kernels of this GPU look at the memory of another.
    ///
    /// # Errors
    /// There is no way from one to the other, by NVLink or PCIe.
    pub fn look_at(&self, other: &Gpu) -> Result<()> {
        if self.context.device == other.context.device {
            return Ok(());
        }
        self.context.bind()?;
        let mut can = 0;
        // SAFETY: both devices are the driver's, and the answer goes into an integer that is there.
        let answer = unsafe { cuDeviceCanAccessPeer(&mut can, self.context.device, other.context.device) };
        self.context.succeed(answer, "say which other GPUs it reaches")?;
        if can == 0 {
            return Err(Error::input(format!(
                "the {} cannot look at the memory of the other {}: there is no NVLink between them, and PCIe does not let them",
                self.name(),
                other.name()
            ))
            .help("`nvidia-smi topo -p2p r` shows which can; take those, or one GPU"));
        }
        // SAFETY: this context is current, and the other one is retained until `other` is dropped.
        match unsafe { cuCtxEnablePeerAccess(other.context.handle, 0) } {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            answer => self.context.succeed(answer, "look at the memory of another GPU"),
        }
    }

    /// Lets what this GPU is asked from now on wait for what another was asked until now. Nobody waits on the host.
    ///
    /// # Errors
    /// A kernel launched before has failed.
    pub fn wait_for(&self, other: &Gpu) -> Result<()> {
        // What was recorded stays so when the event is gone.
        let event = Event::mark(&other.context)?;
        event.record_among_launches()?;
        event.hold_back(&self.context)
    }
}
