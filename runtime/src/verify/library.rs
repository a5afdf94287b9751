//! Kernels of texts: each text is compiled once, several together where that is quicker, on all cores.

use super::Tools;
use crate::cache::{compile_cached, library_cached};
use crate::cuda::Gpu;
use crate::emulate::{self, Source};
use crate::error::{Error, Fault, Result};
use crate::machine::Machine;
use crate::nvrtc::{Kind, compile_together, name_among};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most kernels that a compiler is given at once: few, so that all cores have some to compile.
const TOGETHER: usize = 8;

/// What compilers make of a text.
#[derive(Clone)]
struct Image {
    /// By NVRTC, if there is one.
    cubin: Option<Cubin>,
    /// By the compiler of the emulator, if kernels run there.
    emulated: Option<emulate::Kernel>,
}

/// Machine code of a kernel, and of others perhaps.
#[derive(Clone)]
struct Cubin {
    image: Arc<[u8]>,
    /// What the kernel is called there.
    name: String,
}

/// What compilers make of a text, or what one says that does not take it.
type Made = std::result::Result<Image, String>;

/// What is known, by the name of the kernel and the text.
#[derive(Clone, Default)]
pub struct Known(Arc<Mutex<BTreeMap<(String, String), Made>>>);

impl Known {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<(String, String), Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, Source { name, text }: &Source) -> bool {
        self.locked().contains_key(&((*name).to_owned(), (*text).to_owned()))
    }
}

/// Kernels that were made of texts.
pub struct Library {
    tools: Tools,
    known: Known,
}

impl Library {
    /// One without kernels.
    pub fn new(tools: &Tools) -> Arc<Self> {
        Arc::new(Self { tools: tools.clone(), known: Known::default() })
    }

    /// Compiles those texts that are not known yet. A text that is no kernel is no error.
    ///
    /// # Errors
    /// A compiler cannot work.
    pub(super) fn add<'a>(&self, texts: impl Iterator<Item = Source<'a>>) -> Result<()> {
        let mut own: Vec<Source> = texts.filter(|text| !self.known.has(text)).collect();
        own.sort_by_key(|own| (own.name, own.text));
        own.dedup_by_key(|own| (own.name, own.text));
        let together = own.len().div_ceil(rayon::current_num_threads()).clamp(1, TOGETHER);
        let made = own.par_chunks(together).map(|texts| made(&self.tools, texts));
        let made: Vec<Made> = made.collect::<Result<Vec<_>>>()?.concat();
        self.known.locked().extend(own.iter().map(|own| (own.name.to_owned(), own.text.to_owned())).zip(made));
        Ok(())
    }

    /// What compiles, and what runs.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// What compilers make of a text. One that was not known before is compiled now: it is one of the few that are known only when
    /// something is computed, and other libraries will need it, too.
    fn image(&self, name: &str, text: &str) -> Result<Image> {
        let (key, late) = ((name.to_owned(), text.to_owned()), &self.tools.late);
        let known = self.known.locked().get(&key).cloned().or_else(|| late.locked().get(&key).cloned());
        let made = match known {
            Some(made) => made,
            None => {
                let made = made(&self.tools, &[Source { name, text }])?.remove(0);
                late.locked().entry(key).or_insert(made).clone()
            }
        };
        made.map_err(Error::check)
    }

    /// Whether all compilers that there are take a text.
    ///
    /// # Errors
    /// One does not.
    pub(super) fn check(&self, name: &str, text: &str) -> Result<()> {
        self.image(name, text).map(|_| ())
    }

    /// The kernel of a text on a GPU.
    ///
    /// # Errors
    /// NVRTC does not take it, or the GPU does not.
    pub(super) fn on_gpu(&self, gpu: &Gpu, name: &str, text: &str) -> Result<<Gpu as Machine>::Kernel> {
        let cubin = self.image(name, text)?.cubin;
        let Cubin { image, name } = cubin.ok_or_else(|| Error::input("there is no NVRTC to compile kernels by"))?;
        gpu.load(&image)?.kernel(&name)
    }

    /// The kernel of a text on the emulator.
    ///
    /// # Errors
    /// A compiler does not take it.
    pub(super) fn emulated(&self, name: &str, text: &str) -> Result<emulate::Kernel> {
        let kernel = self.image(name, text)?.emulated;
        kernel.ok_or_else(|| Error::check(format!("`{name}` is not in what was compiled")))
    }
}

/// What compilers make of texts.
fn made(tools: &Tools, texts: &[Source]) -> Result<Vec<Made>> {
    let cubins = by_nvrtc(tools, texts)?;
    let both = cubins.into_iter().zip(emulated(tools, texts)?);
    Ok(both.map(|(cubin, emulated)| Ok(Image { cubin: cubin?, emulated: emulated? })).collect())
}

/// What a compiler made of one text, or what it says of it.
type Compiled<T> = std::result::Result<Option<T>, String>;

/// What NVRTC makes of texts: of each alone where that is kept, as whoever runs it will take it, or else together.
fn by_nvrtc(tools: &Tools, texts: &[Source]) -> Result<Vec<Compiled<Cubin>>> {
    let Some(arch) = &tools.arch else { return Ok(texts.iter().map(|_| Ok(None)).collect()) };
    if !tools.keeps
        && texts.len() > 1
        && let Ok(image) = faulty(compile_together(texts, arch))?
    {
        let image: Arc<[u8]> = image.into();
        let cubin = |number| Cubin { image: Arc::clone(&image), name: name_among(number) };
        return Ok((0..texts.len()).map(|number| Ok(Some(cubin(number)))).collect());
    }
    // One that does not compile is no reason to know nothing of the others.
    let alone = texts.iter().map(|Source { name, text }| {
        let built = compile_cached(text, &format!("{name}.cu"), arch, Kind::Cubin);
        faulty(built.map(|built| Some(Cubin { image: built.compiled.image.into(), name: (*name).to_owned() })))
    });
    alone.collect()
}

/// What the compiler of the emulator makes of texts, together.
fn emulated(tools: &Tools, texts: &[Source]) -> Result<Vec<Compiled<emulate::Kernel>>> {
    let Some((compiler, settings)) = &tools.emulator else { return Ok(texts.iter().map(|_| Ok(None)).collect()) };
    let library = match tools.keeps {
        true => library_cached(compiler, texts, settings),
        false => compiler.build(texts, settings),
    };
    match faulty(library)? {
        Ok(kernels) => Ok(kernels.into_iter().map(|kernel| Ok(Some(kernel))).collect()),
        Err(message) if texts.len() == 1 => Ok(vec![Err(message)]),
        // One that does not compile is no reason to know nothing of the others.
        Err(_) => {
            let alone = texts.iter().map(|text| emulated(tools, std::slice::from_ref(text)));
            Ok(alone.collect::<Result<Vec<_>>>()?.concat())
        }
    }
}

/// A text that a compiler does not take is what was looked for; a compiler that does not work is an error.
fn faulty<T>(made: Result<T>) -> Result<std::result::Result<T, String>> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(error) if error.fault == Fault::Check => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_does_not_work_is_no_finding() {
        assert!(faulty::<()>(Err(Error::input("the disk is full"))).is_err());
        assert_eq!(faulty::<()>(Err(Error::check("no such type"))).unwrap(), Err("no such type".to_owned()));
    }
}
