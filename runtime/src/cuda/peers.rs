//! Several GPUs of one host: kernels of one look at the memory of another, and what is recorded of all waits for what all were asked before.

use std::ffi::OsStr;

use cudarc::driver::sys::CUresult;

use super::Gpu;
use super::context::Event;
use super::driver::{cuCtxEnablePeerAccess, cuDeviceCanAccessPeer};
use crate::{Error, Result};

/// Refuses an environment in which the driver lets the host wait for each kernel: one that waits for another GPU would wait for ever.
fn check_blocking(said: Option<&OsStr>) -> Result<()> {
    match said.is_some_and(|said| !said.is_empty() && said != "0") {
        true => {
            Err(Error::input("with CUDA_LAUNCH_BLOCKING, the kernels of one GPU end before those of another begin")
                .help("several GPUs wait for each other: unset it, or take one GPU"))
        }
        false => Ok(()),
    }
}

impl Gpu {
    /// Lets kernels of this GPU look at the memory of another.
    ///
    /// # Errors
    /// There is no way from one to the other, by NVLink or PCIe.
    pub fn look_at(&self, other: &Gpu) -> Result<()> {
        check_blocking(std::env::var_os("CUDA_LAUNCH_BLOCKING").as_deref())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_each_kernel_has_one_gpu() {
        let said = |text: &str| check_blocking(Some(OsStr::new(text))).map_err(|error| error.message);
        assert_eq!(
            [said(""), said("0"), check_blocking(None).map_err(|error| error.message)],
            [Ok(()), Ok(()), Ok(())]
        );
        assert!(said("1").unwrap_err().contains("CUDA_LAUNCH_BLOCKING"));
    }
}
