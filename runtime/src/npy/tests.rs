use super::*;
use crate::array::{Array, Data};
use crate::error::Result;
use crate::rows::Part;
use std::fs;
use std::io::{Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A file of version 1 with this header and these numbers.
fn file(header: &str, numbers: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

fn typed(element: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}\n");
    file(&header, numbers)
}

fn read_bytes(bytes: &[u8]) -> Result<Array> {
    read(&mut &bytes[..], bytes.len() as u64)
}

fn refused(bytes: &[u8], expected: &str) {
    match read_bytes(bytes) {
        Ok(array) => panic!("read {array:?} where \"{expected}\" was expected"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(expected), "\"{text}\" lacks \"{expected}\"");
        }
    }
}

#[test]
fn arrays_survive_a_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    for (shape, data) in [
        (vec![1, 2, 2], Data::F32(vec![1.5, -0.0, f32::INFINITY, 1e-40])),
        (vec![2, 2], Data::F64(vec![0.1, f64::MIN, 5e-324, -1.0])),
        (vec![3], Data::I32(vec![i32::MIN, 0, i32::MAX])),
        (vec![2, 1], Data::Bool(vec![0, 1])),
        (vec![], Data::F64(vec![7.0])),
        (vec![0, 5], Data::F32(vec![])),
        (vec![CHUNK + 1], Data::I32((0..=CHUNK as i32).collect())),
    ] {
        let array = Array { shape, data };
        save(&path, &array).unwrap();
        assert_eq!(load(&path).unwrap(), array);
    }
}

#[test]
fn saved_bytes_are_those_of_numpy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let array = Array { shape: vec![1, 2], data: Data::Bool(vec![1, 0]) };
    save(&path, &array).unwrap();
    let bytes = fs::read(&path).unwrap();
    // The numbers are aligned to 64 bytes, so that the file can be mapped into memory.
    assert_eq!(bytes.len(), 128 + 2);
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '|b1'"));
    assert!(bytes.ends_with(b" \n\x01\x00"));
}

#[test]
fn a_shape_that_does_not_fit_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let array = Array { shape: vec![2, 3], data: Data::I32(vec![1]) };
    let error = save(&directory.path().join("a.npy"), &array).unwrap_err();
    assert!(error.message.contains("[2, 3]"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn every_width_and_byte_order_is_read() {
    let ints = |values: &[i32]| Data::I32(values.to_vec());
    for (element, bytes, expected) in [
        ("<i4", &[1, 0, 0, 0x80][..], ints(&[i32::MIN + 1])),
        (">i4", &[0x80, 0, 0, 1], ints(&[i32::MIN + 1])),
        ("<i2", &[0xfe, 0xff], ints(&[-2])),
        (">i2", &[0xff, 0xfe], ints(&[-2])),
        ("<u2", &[0xfe, 0xff], ints(&[0xfffe])),
        (">u2", &[0xff, 0xfe], ints(&[0xfffe])),
        ("|i1", &[0xfe], ints(&[-2])),
        ("|u1", &[0xfe], ints(&[0xfe])),
        ("|b1", &[2], Data::Bool(vec![1])),
        ("<f4", &[0, 0, 0xc0, 0x3f], Data::F32(vec![1.5])),
        (">f4", &[0x3f, 0xc0, 0, 0], Data::F32(vec![1.5])),
        (">f8", &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Data::F64(vec![1.5])),
    ] {
        let array = read_bytes(&typed(element, "(1,)", bytes)).unwrap();
        assert_eq!(array.data, expected, "{element}");
        assert_eq!(array.shape, [1]);
    }
}

#[test]
fn fortran_order_becomes_c_order() {
    // Element (k, j, i) of shape (2, 3, 4) holds 100 k + 10 j + i.
    let mut stored = Vec::new();
    for (i, j, k) in (0..4).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i, j, k)))) {
        stored.push(100 * k + 10 * j + i);
    }
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}";
    let array = read_bytes(&file(header, &stored)).unwrap();
    assert_eq!(array.shape, [2, 3, 4]);
    let Data::I32(values) = array.data else {
        panic!("bytes are widened");
    };
    for (n, value) in values.iter().enumerate() {
        assert_eq!(*value as usize, 100 * (n / 12) + 10 * (n / 4 % 3) + n % 4);
    }
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (1099511627776, 0)}";
    assert!(read_bytes(&file(header, &[])).unwrap().data.is_empty());
}

#[test]
fn other_types_are_refused_with_advice() {
    for (element, expected) in [
        ("<f16", ".astype('float64')"),
        ("<c16", "array.real"),
        ("<U5", "text"),
        ("|S5", "text"),
        ("|O", "Python objects"),
        ("|V8", "raw bytes"),
        ("<M8[s]", "times"),
        ("hello", "unknown type"),
    ] {
        refused(&typed(element, "(1,)", &[0; 16]), expected);
    }
    let header = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}";
    refused(&file(header, &[0; 4]), "array['field']");
}

#[test]
fn impossible_shapes_are_refused_without_allocating() {
    refused(&typed("<f8", "(-1,)", &[0; 8]), "-1 elements");
    refused(&typed("<f8", "(4294967296, 4294967296)", &[]), "no memory");
    refused(&typed("<f8", "(99999999999999999999,)", &[]), "elements");
    refused(&typed("<f8", "(100000000000, 1000000)", &[]), "cut short");
    refused(&typed("<f8", "(2.5,)", &[0; 8]), "header");
    refused(&typed("<f8", "3", &[0; 24]), "header");
    refused(&typed("|u1", &format!("({})", "1,".repeat(65)), &[0]), "65 axes");
    refused(&typed("<f8", &"(".repeat(5000), &[]), "header");
}

#[test]
fn lengths_that_do_not_match_are_refused() {
    refused(&typed("<f8", "(2,)", &[0; 15]), "cut short");
    refused(&typed("<f8", "(2,)", &[0; 17]), "something follows");
    refused(&typed("<f8", "(2,)", &[])[..40], "within its header");
    refused(&MAGIC[..6], "within its header");
    refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "4294967295 bytes");
    refused(b"\x93NUMPY\x04\x00\x10\x00{}          ", "version 4.0");
}

#[test]
fn other_files_are_recognised() {
    refused(b"", "is empty");
    refused(b"PK\x03\x04 and more of it that follows", "numpy.load");
    refused(b"1.0, 2.0\n3.0", r#"text: "1.0, 2.0\n3.0"#);
    refused(b"\x89HDF\r\n\x1a\n", "HDF5");
    refused(b"CDF\x02\0\0\0\0", "xarray.open_dataset");
    refused(b"GRIB\0\0\0\x02", "engine='cfgrib'");
    refused(b"II*\0\x08\0\0\0", "rasterio");
    refused(b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "loadmat");
    refused(b"\x1f\x8b\x08\0\0\0\0\0", "gzip");
    refused(b"\x80\x04\x95\0\0", "a pickle");
    // Cut within its last letter.
    refused("Höhe in Metern über dem Meer: ä".as_bytes(), "text: \"Höhe in");
    refused(&[b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".as_slice(), &"é".as_bytes()[..1]].concat(), "text: \"aaaa");
    refused(&[0xff, 0xfe, 0x00, 0x01], "ff fe 00 01");
}

#[test]
fn a_missing_file_is_guessed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let help = |name: &str| load(&at(name)).unwrap_err().help.unwrap();
    assert!(help("a.npy").contains("no .npy files"));
    for name in ["pressure", "u", "v", "w", "theta", "rho"] {
        fs::write(at(&format!("{name}.npy")), b"").unwrap();
    }
    for slip in ["presure.npy", "Pressure.npy", "pressure", "prexsure.npy"] {
        assert!(help(slip).contains("did you mean"), "{slip}");
        assert!(help(slip).contains("pressure.npy`?"), "{slip}");
    }
    let listed = help("salinity.npy");
    assert_eq!(listed.matches(".npy`").count(), 5, "{listed}");
    assert!(help("none/a.npy").contains("no directory"));
    let error = load(directory.path()).unwrap_err().to_string();
    assert!(error.contains("a directory"), "{error}");
    let error = load(&at("u.npy")).unwrap_err().to_string();
    assert!(error.contains("u.npy`: it is empty"), "{error}");
}

#[test]
fn wide_integers_are_read_where_they_fit() {
    for (element, bytes, expected) in [
        ("<i8", (-5_i64).to_le_bytes(), -5),
        (">i8", i64::from(i32::MIN).to_be_bytes(), i32::MIN),
        ("<u8", 2_147_483_647_u64.to_le_bytes(), i32::MAX),
    ] {
        assert_eq!(read_bytes(&typed(element, "(1,)", &bytes)).unwrap().data, Data::I32(vec![expected]));
    }
    assert_eq!(read_bytes(&typed(">u4", "(1,)", &[0, 0, 0, 9])).unwrap().data, Data::I32(vec![9]));
    refused(&typed("<i8", "(1,)", &(-2_147_483_649_i64).to_le_bytes()), "the integer -2147483649 (`<i8`)");
    refused(&typed("<u8", "(1,)", &[0xff; 8]), "the integer 18446744073709551615");
    refused(&typed(">u4", "(2,)", &[0, 0, 0, 9, 0x80, 0, 0, 0]), "the integer 2147483648");
}

#[test]
fn headers_of_python_2_are_read() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1L, 2L)}";
    assert_eq!(read_bytes(&file(header, &[3, 4])).unwrap().shape, [1, 2]);
}

#[test]
fn headers_have_three_entries() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}";
    refused(&file(header, &[3]), "header");
}

/// Single precision from 16 bits by the definition of the format, in exact steps.
#[test]
fn halves_are_what_the_format_says() {
    for bits in 0..=u16::MAX {
        let (sign, exponent, fraction) = (bits >> 15, i32::from((bits >> 10) & 31), u32::from(bits & 1023));
        let expected = match (exponent, fraction) {
            (31, 0) => f32::INFINITY.to_bits(),
            (31, _) => f32::NAN.to_bits(),
            (0, 0) => 0,
            (0, _) => {
                // The first bit that is set becomes the implicit one.
                let shift = fraction.leading_zeros() - 21;
                ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x7f_ffff)
            }
            (_, _) => ((exponent + 112) as u32) << 23 | fraction << 13,
        };
        let Data::F32(read) = read_bytes(&typed("<f2", "(1,)", &bits.to_le_bytes())).unwrap().data else {
            panic!("halves become singles");
        };
        if read[0].is_nan() {
            assert!(exponent == 31 && fraction != 0, "{bits:04x}");
        } else {
            assert_eq!(read[0].to_bits(), expected | u32::from(sign) << 31, "{bits:04x}");
        }
    }
}

/// An archive of one array `a`, whose directory says that it has so many bytes.
fn claiming(array: &[u8], length: Option<u32>) -> Archive<Cursor<Vec<u8>>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.npy", SimpleFileOptions::default()).unwrap();
    writer.write_all(array).unwrap();
    let mut bytes = writer.finish().unwrap().into_inner();
    if let Some(length) = length {
        let directory = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
        bytes[directory + 24..directory + 28].copy_from_slice(&length.to_le_bytes());
    }
    Archive::new(Cursor::new(bytes)).unwrap()
}

#[test]
fn archives_are_as_long_as_they_say() {
    let array = typed("|u1", "(2,)", &[3, 4]);
    let mut right = claiming(&array, None);
    assert_eq!(right.count("a").unwrap(), 2);
    assert_eq!(right.array("a").unwrap().data, Data::I32(vec![3, 4]));
    let said = |mut archive: Archive<_>| archive.array("a").unwrap_err().to_string();
    // What would be unpacked beyond what was said is not.
    let longer = [array.clone(), vec![0; 1 << 20]].concat();
    let text = said(claiming(&longer, Some(array.len() as u32)));
    assert!(text.starts_with("`a`: ") && text.contains("the file is damaged"), "{text}");
    let text = said(claiming(&array, Some(u32::MAX - 1)));
    assert!(text.contains("4294967294 bytes are said to be packed into"), "{text}");
    let mut claims = claiming(&array, Some(u32::MAX - 1));
    assert!(claims.count("a").is_err() && claims.count("b").is_err());
}

/// Some rows of files in both orders of axes and of bytes, as they are in all of it.
#[test]
fn rows_are_those_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let numbers: Vec<i32> = (0..2 * 5 * 3).map(|n| n * n - 7).collect();
    for shape in ["(2, 5, 3)", "(10, 3)", "(1, 2, 5, 3)", "(30,)", "(0, 5, 3)", "(2, 5, 0)"] {
        for (element, order) in [("<i4", "False"), (">i4", "False"), ("<i4", "True"), (">i2", "True")] {
            let is_empty = shape.contains("(0") || shape.contains("0)") && !shape.contains("(30");
            let own = if is_empty { &[] } else { &numbers[..] };
            let bytes = own.iter().flat_map(|number| match element {
                "<i4" => number.to_le_bytes().to_vec(),
                ">i4" => number.to_be_bytes().to_vec(),
                _ => (*number as i16).to_be_bytes().to_vec(),
            });
            let header = format!("{{'descr': '{element}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
            fs::write(&path, file(&header, &bytes.collect::<Vec<_>>())).unwrap();
            let (whole, stored) = (load(&path).unwrap(), Stored::open(&path).unwrap());
            assert_eq!((stored.whole().unwrap(), stored.shape()), (whole.clone(), &whole.shape[..]), "{header}");
            let bytes = fs::read(&path).unwrap();
            let mut hashes = Vec::new();
            for part in [0, 1, 2].map(|number| Part { number, parts: 3 }) {
                let (found, hash) = read_rows(&mut &bytes[..], bytes.len() as u64, part).unwrap();
                assert_eq!(found.shape, whole.shape, "{header}");
                let rows = if let [.., rows, _] = whole.shape[..] { part.rows(rows) } else { 0..1 };
                assert_eq!(found.data, stored.rows(rows).unwrap().data, "{header} {part:?}");
                hashes.push(hash);
            }
            assert!(hashes.iter().all(|hash| hash == blake3::hash(&bytes).as_bytes()));
            let [.., rows, inner] = whole.shape[..] else { continue };
            for range in [0..rows, 1..3, 2..2, rows..rows] {
                if range.end > rows {
                    continue;
                }
                let found = stored.rows(range.clone()).unwrap();
                let mut shape = whole.shape.clone();
                let axis = shape.len() - 2;
                shape[axis] = range.len();
                let kept = (0..whole.data.len()).filter(|at| range.contains(&(at / inner.max(1) % rows)));
                let expected = Array { shape, data: whole.data.pick(kept) };
                assert_eq!(found, expected, "{header} {range:?}");
            }
            assert!(stored.rows(0..rows + 1).unwrap_err().message.contains("are asked for of"));
        }
    }
}

/// What is wrong with a file is said as where all of it is read, and before anything is.
#[test]
fn files_of_which_rows_are_read_are_refused_as_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    for bytes in [
        b"something else".to_vec(),
        typed("<f8", "(2, 3)", &[0; 40]),
        typed("<f8", "(2, 3)", &[0; 50]),
        typed("<c16", "(1, 1)", &[0; 16]),
        typed("<f8", "(99999999999, 99999999999)", &[]),
    ] {
        fs::write(&path, bytes).unwrap();
        let [whole, rows] = [load(&path).map(drop), Stored::open(&path).map(drop)].map(|own| own.unwrap_err());
        assert_eq!((rows.message, rows.help), (whole.message, whole.help));
    }
    let [whole, rows] = [load(directory.path()).map(drop), Stored::open(directory.path()).map(drop)];
    assert_eq!(rows.unwrap_err().message, whole.unwrap_err().message);
    // Only where it is read a number is found that is too large.
    let numbers = [1_i64, 2, 3, 1 << 40].map(i64::to_le_bytes).concat();
    fs::write(&path, typed("<i8", "(2, 2)", &numbers)).unwrap();
    let stored = Stored::open(&path).unwrap();
    assert_eq!(stored.rows(0..1).unwrap().data, Data::I32(vec![1, 2]));
    assert_eq!(stored.rows(1..2).unwrap_err().message, load(&path).unwrap_err().message);
}

/// What is damaged behind the rows that are kept is found all the same.
#[test]
fn an_archive_of_which_rows_are_kept_is_looked_at_to_its_end() {
    let array = Array { shape: vec![2, 3, 2], data: Data::F64((0..12).map(f64::from).collect()) };
    let mut bytes = Vec::new();
    let part = Part { number: 0, parts: 3 };
    write_archive(&mut bytes, [("a".to_owned(), array.clone())].into_iter()).unwrap();
    let (rows, _) = Archive::new(Cursor::new(&bytes)).unwrap().rows("a", part).unwrap();
    assert_eq!((rows.shape, rows.data), (array.shape.clone(), Data::F64(vec![0.0, 1.0, 6.0, 7.0])));
    let mut found = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let Ok(mut archive) = Archive::new(Cursor::new(&damaged)) else { continue };
        // Whoever reads all of it, and whoever keeps some rows, find the same.
        let (whole, rows) = (archive.array("a").map(drop), archive.rows("a", part).map(drop));
        assert_eq!(whole.is_err(), rows.is_err(), "byte {at}: {whole:?} {rows:?}");
        found += usize::from(rows.is_err());
    }
    assert!(found > 50, "{found} damages were found");
}
