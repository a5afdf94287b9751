//! The errors of files that hold no array that a field can have, each with what mends it in Python.

use std::io;

use npyz::{TypeChar, TypeStr};

use crate::error::Error;

/// The error of a file whose content cannot be right.
pub(super) fn damaged(what: &str) -> Error {
    Error::input(what).help("the file is damaged or was not written to its end; write it again")
}

/// The error of a file that could not be read although it is there.
pub(super) fn broken(error: io::Error) -> Error {
    Error::input(error.to_string())
}

/// The error of an integer that 32 bits do not hold.
pub(super) fn too_large(value: &str, element: &TypeStr) -> Error {
    Error::input(format!("it holds the integer {value} (`{element}`), and fields have 32 bits"))
        .help("for a `real` field, convert it before saving: `array.astype('float64')`")
}

/// The error of numbers that no field can have.
pub(super) fn unsupported(element: &TypeStr) -> Error {
    let (what, help) = match element.type_char() {
        TypeChar::Float => (
            format!("{}-bit reals", element.size_field().saturating_mul(8)),
            "convert them before saving: `array.astype('float64')`",
        ),
        TypeChar::Complex => ("complex numbers".to_owned(), "save two arrays: `array.real` and `array.imag`"),
        TypeChar::ByteStr | TypeChar::UnicodeStr => {
            ("text, not numbers".to_owned(), "convert it before saving: `array.astype('float64')`")
        }
        TypeChar::TimeDelta | TypeChar::DateTime => (
            "times".to_owned(),
            "convert them to numbers before saving: `(array - array[0]) / numpy.timedelta64(1, 's')`",
        ),
        TypeChar::Object => (
            "Python objects (a pickle), which could run any program when read".to_owned(),
            "convert them before saving: `array.astype('float64')`",
        ),
        _ => ("raw bytes".to_owned(), "convert them before saving: `array.view('float64')`"),
    };
    Error::input(format!("it holds {what} (`{element}`), but fields are `f4`, `f8`, `i4` or `bool`")).help(help)
}

/// Another kind of file that arrays come in.
struct Format {
    /// What it begins with.
    magic: &'static [u8],
    name: &'static str,
    /// How to get an array out of it, in Python.
    remedy: &'static str,
}

const XARRAY: &str = "write one variable of it: `numpy.save('name.npy', xarray.open_dataset('FILE')['name'])`";
const IMAGE: &str = "write its numbers: `numpy.save('name.npy', imageio.v3.imread('FILE'))`";
const GEOTIFF: &str = "write its numbers: `numpy.save('name.npy', rasterio.open('FILE').read())`";
const UNPACK: &str = "unpack it first, if what it holds is a .npy file";

/// Longer beginnings stand before shorter ones that they contain.
const FORMATS: &[Format] = &[
    Format {
        magic: b"PK",
        name: "a zip archive, as .npz files are",
        remedy: "take one array out: `numpy.save('name.npy', numpy.load('FILE')['name'])`",
    },
    Format { magic: b"\x89HDF\r\n\x1a\n", name: "HDF5 or NetCDF-4", remedy: XARRAY },
    Format { magic: b"CDF", name: "NetCDF", remedy: XARRAY },
    Format {
        magic: b"GRIB",
        name: "GRIB",
        remedy: "write one variable of it: \
                 `numpy.save('name.npy', xarray.open_dataset('FILE', engine='cfgrib')['name'])`",
    },
    Format { magic: b"II*\0", name: "a TIFF image", remedy: GEOTIFF },
    Format { magic: b"MM\0*", name: "a TIFF image", remedy: GEOTIFF },
    Format { magic: b"II+\0", name: "a TIFF image", remedy: GEOTIFF },
    Format { magic: b"\x89PNG", name: "a PNG image", remedy: IMAGE },
    Format { magic: b"\xff\xd8\xff", name: "a JPEG image", remedy: IMAGE },
    Format {
        magic: b"MATLAB 5.0",
        name: "a MATLAB file",
        remedy: "write one variable of it: `numpy.save('name.npy', scipy.io.loadmat('FILE')['name'])`",
    },
    Format {
        magic: b"PAR1",
        name: "Parquet",
        remedy: "write one column of it: `numpy.save('name.npy', pandas.read_parquet('FILE')['name'])`",
    },
    Format { magic: b"\x1f\x8b", name: "compressed (gzip)", remedy: UNPACK },
    Format { magic: b"BZh", name: "compressed (bzip2)", remedy: UNPACK },
    Format { magic: b"\xfd7zXZ", name: "compressed (xz)", remedy: UNPACK },
    Format { magic: b"\x28\xb5\x2f\xfd", name: "compressed (zstd)", remedy: UNPACK },
    Format { magic: b"\x7fELF", name: "a program", remedy: "give the array that it writes" },
    // From protocol 2 on, a pickle begins with its number.
    Format { magic: b"\x80\x02", name: "a pickle", remedy: PICKLE },
    Format { magic: b"\x80\x03", name: "a pickle", remedy: PICKLE },
    Format { magic: b"\x80\x04", name: "a pickle", remedy: PICKLE },
    Format { magic: b"\x80\x05", name: "a pickle", remedy: PICKLE },
];

const PICKLE: &str = "load it where it comes from, and write the array with `numpy.save`";

/// The error of another kind of file, told from how it begins.
pub(super) fn not_npy(beginning: &[u8]) -> Error {
    if beginning.is_empty() {
        return Error::input("it is empty").help("write it again");
    }
    if let Some(Format { name, remedy, .. }) = FORMATS.iter().find(|format| beginning.starts_with(format.magic)) {
        return Error::input(format!("it is not a .npy file but {name}")).help(*remedy);
    }
    match text(beginning) {
        Some(text) => Error::input(format!("it is not a .npy file but text: \"{}\"", text.escape_debug()))
            .help("write its numbers: `numpy.save('name.npy', numpy.loadtxt('FILE'))`, with delimiter=',' for commas"),
        None => {
            let bytes: Vec<String> = beginning.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            Error::input(format!("it is not a .npy file: it begins with the bytes {}", bytes.join(" "))).help(
                "bare numbers of, say, double precision become one by \
                 `numpy.save('name.npy', numpy.fromfile('FILE').reshape(nk, nj, ni))`",
            )
        }
    }
}

/// The beginning of a text, which may end within a letter.
fn text(beginning: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let is_text = !text.is_empty() && !text.contains(|c: char| c.is_control() && !c.is_whitespace());
    is_text.then_some(text)
}
