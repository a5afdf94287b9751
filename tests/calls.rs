//! Stencils that are called on arrays which belong to somebody else: plain ones, rows with room between them, parts of larger ones.

use crate::common::{lowered, problem, stencils};
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, called};
use stencilc_compiler::source::Source;
use stencilc_runtime::cuda::{Buffer, Gpu, availability};
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::job::{Arrays, Domain, Job, Subject};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Array, Cast, Data, Device, Drawing, Element, Error, Lent};

/// Numbers with room between rows and levels, and before all of them.
struct Padded {
    words: Vec<u64>,
    element: Element,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

/// Elements before the first.
const BEFORE: usize = 3;

/// What stands where no element is.
const ROOM: u8 = 0xA7;

impl Padded {
    /// An array whose elements along k, j and i are so far apart. Where those along k follow each other, columns are elements of
    /// arrays without levels.
    fn new(array: &Array, is_horizontal: bool, [level, row, column]: [usize; 3]) -> Self {
        let strides = match (is_horizontal, array.shape.len()) {
            (true, 3) => vec![level, row, column],
            (true, _) => vec![row / column, 1],
            (false, _) => vec![1],
        };
        let extent: usize = array.shape.iter().zip(&strides).map(|(length, stride)| (length - 1) * stride).sum();
        let element = array.data.element();
        let words = vec![u64::from_ne_bytes([ROOM; 8]); (BEFORE + extent + 4) * element.bytes() / 8 + 2];
        let mut own = Self { words, element, shape: array.shape.clone(), strides };
        for number in 0..array.data.len() {
            let bytes: Vec<u8> = match &array.data {
                Data::F32(v) => v[number].to_ne_bytes().to_vec(),
                Data::F64(v) => v[number].to_ne_bytes().to_vec(),
                Data::I32(v) => v[number].to_ne_bytes().to_vec(),
                Data::Bool(v) => vec![v[number]],
            };
            let at = own.at(number);
            own.bytes_mut()[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        own
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.words.len() * 8;
        // SAFETY: these are the bytes of the words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), len) }
    }

    /// The first byte of an element.
    fn at(&self, mut number: usize) -> usize {
        let mut place = BEFORE;
        for (length, stride) in self.shape.iter().zip(&self.strides).rev() {
            place += number % length * stride;
            number /= length;
        }
        place * self.element.bytes()
    }

    fn lent(&mut self, is_writable: bool) -> Lent<'static> {
        let address = self.bytes_mut().as_mut_ptr().expose_provenance() + BEFORE * self.element.bytes();
        let (shape, strides) = (&self.shape, &self.strides);
        let memory = stencilc_runtime::lent::Memory::Host;
        // SAFETY: the words outlive the call, as the test sees to.
        unsafe { Lent::at(memory, address as u64, self.element, shape, strides, is_writable) }.unwrap()
    }

    /// The same without room.
    fn bits(&mut self) -> Vec<Vec<u8>> {
        let bytes = self.element.bytes();
        let places: Vec<usize> = (0..self.shape.iter().product()).map(|number| self.at(number)).collect();
        places.into_iter().map(|at| self.bytes_mut()[at..at + bytes].to_vec()).collect()
    }

    /// Bytes where no element is.
    fn room(&mut self) -> Vec<u8> {
        let bytes = self.element.bytes();
        let taken: Vec<usize> = (0..self.shape.iter().product())
            .flat_map(|n| {
                let at = self.at(n);
                at..at + bytes
            })
            .collect();
        let mut is_taken = vec![false; self.words.len() * 8];
        taken.into_iter().for_each(|at| is_taken[at] = true);
        self.bytes_mut().iter().zip(is_taken).filter(|(_, is_taken)| !is_taken).map(|(byte, _)| *byte).collect()
    }
}

/// Every stencil that comes along, on arrays with room, against the interpreter on arrays of its own; what is not computed stays.
#[test]
fn calls_compute_the_same_bits_and_nothing_beyond() {
    let grid = Grid::rows(14, 13, 9);
    let (mut compared, mut called) = (0, 0);
    for (name, text) in stencils() {
        let lowered = stencilc_compiler::check(&Source::new(&name, &text));
        for stencil in &lowered.stencils {
            for precision in [Precision::F64, Precision::F32] {
                let request = Request {
                    stencil,
                    precision,
                    contract: true,
                    grid: Some(grid),
                    adjacency: None,
                    arrays: BTreeMap::new(),
                    settings: BTreeMap::new(),
                    seed: 5,
                    cast: Cast::Exact,
                    drawing: Drawing::Inputs,
                };
                // Some have parameters without a value.
                let Ok(mut problem) = Problem::new(request) else { continue };
                let before = problem.outputs.clone();
                let mut expected = std::mem::take(&mut problem.outputs);
                interpret(&problem.job(&problem.inputs()), &mut expected, &|_| {}).unwrap();
                let ways = [
                    (Device::Cpu, [230, 17, 1]),
                    (Device::Emulate, [182, 14, 1]),
                    (Device::Emulate, [15, 140, 1]),
                    // Levels are fastest, and so close that those of an interface just find room.
                    (Device::Cpu, [1, 180, 12]),
                    (Device::Emulate, [1, 140, 10]),
                    (Device::Emulate, [1, 300, 20]),
                ];
                for (device, strides) in ways {
                    let padded = |own: &[Option<Data>]| -> Vec<Option<Padded>> {
                        let fields = problem.stencil.fields.iter().zip(own);
                        fields
                            .map(|((_, field), data)| {
                                let array = Array { shape: grid.shape(field.place), data: data.clone()? };
                                Some(Padded::new(&array, field.place.horizontal, strides))
                            })
                            .collect()
                    };
                    let (mut reads, mut writes) = (padded(&problem.inputs), padded(&before));
                    let mut arrays = Arrays::default();
                    for (((_, field), read), write) in problem.stencil.fields.iter().zip(&mut reads).zip(&mut writes) {
                        if let Some(read) = read {
                            arrays = arrays.read(&field.name, read.lent(false));
                        }
                        if let Some(write) = write {
                            arrays = arrays.write(&field.name, write.lent(true));
                        }
                    }
                    let job =
                        Job::of(Subject::Grid(called::once(stencil, false).0)).precision(precision).device(device);
                    let mut call = job.call(arrays).unwrap_or_else(|error| panic!("{}: {error}", stencil.name));
                    assert_eq!(*call.region(), problem.region);
                    call.run().unwrap();
                    call.run().unwrap();
                    called += 1;
                    let fields = problem.stencil.fields.iter().zip(&expected);
                    for (((_, field), expected), found) in fields.zip(&mut writes) {
                        let (Some(expected), Some(found)) = (expected, found) else { continue };
                        let shape = grid.shape(field.place);
                        let expected =
                            Padded::new(&Array { shape, data: expected.clone() }, field.place.horizontal, strides)
                                .bits();
                        assert!(found.bits() == expected, "{} {device} {strides:?}: {}", stencil.name, field.name);
                        assert!(
                            found.room().iter().all(|byte| *byte == ROOM),
                            "{} {device}: {}",
                            stencil.name,
                            field.name
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(called > 60 && compared > 90, "{called} calls, {compared} fields");
}

/// On a GPU stencils are computed in the memory that is lent, in the caller's stream: each call reads what the last one wrote, without
/// anybody waiting in between.
#[test]
fn calls_on_a_gpu_work_where_the_arrays_are_in_the_order_of_a_stream() {
    if availability().is_err() {
        println!("skipped: no GPU");
        return;
    }
    let gpu = Gpu::open(0).unwrap();
    let text = "stencil smooth { in a; out b; b = 0.2*(a + a[i-1] + a[i+1] + a[j-1] + a[j+1]) }";
    let [nk, nj, ni] = [40, 300, 500];
    let (row, level) = (517, 517 * 301);
    let steps = 40;
    for precision in [Precision::F64, Precision::F32] {
        let grid = Grid::rows(ni, nj, nk);
        let mut problem = problem(&lowered("smooth.stn", text)[0], precision, grid, &[]);
        let before = Array { shape: vec![nk, nj, ni], data: problem.inputs[0].clone().unwrap() };
        let mut padded = Padded::new(&before, true, [level, row, 1]);
        let buffers = [0, 1].map(|_| gpu.upload(padded.bytes_mut()).unwrap());
        let lent = |buffer: &Buffer, is_writable| {
            let address = buffer.pointer(BEFORE * padded.element.bytes());
            let memory = stencilc_runtime::lent::Memory::Device;
            // SAFETY: the buffers outlive the calls, and one call is done before the next in their stream.
            unsafe { Lent::at(memory, address, padded.element, &padded.shape, &padded.strides, is_writable) }.unwrap()
        };
        let stream = gpu.stream().unwrap();
        let job =
            || Job::new(&Source::new("smooth.stn", text), None).unwrap().precision(precision).device(Device::Cuda(0));
        // SAFETY: the stream is there until the end.
        let in_stream = || unsafe { job().stream(stream.handle()) };
        let mut calls = [(0, 1, job()), (1, 0, in_stream())].map(|(from, to, job)| {
            let arrays = Arrays::default().read("a", lent(&buffers[from], false)).write("b", lent(&buffers[to], true));
            job.call(arrays).unwrap()
        });
        for step in 0..steps {
            // SAFETY: nobody looks at the arrays before the stream is done.
            unsafe { calls[step % 2].run_in(stream.handle()) }.unwrap();
        }
        stream.wait().unwrap();
        problem.outputs = vec![None, problem.inputs[0].clone()];
        for _ in 0..steps {
            let mut outputs = std::mem::take(&mut problem.outputs);
            interpret(&problem.job(&problem.inputs()), &mut outputs, &|_| {}).unwrap();
            let new = outputs[1].take().unwrap();
            problem.outputs = vec![None, problem.inputs[0].replace(new)];
        }
        let expected = problem.inputs[0].clone().unwrap();
        let mut found = padded;
        let (bytes, guards) = gpu.download(&buffers[0]).unwrap();
        assert!(guards.intact());
        found.bytes_mut().copy_from_slice(&bytes);
        let expected = Padded::new(&Array { shape: vec![nk, nj, ni], data: expected }, true, [level, row, 1]).bits();
        assert!(found.bits() == expected, "{precision:?}");
        assert!(found.room().iter().all(|byte| *byte == ROOM));
        // Waits by itself.
        calls[0].run().unwrap();
        calls[1].run().unwrap();
    }
    // All of a program goes into the stream that is given.
    let wave = "program wave {\n inout u, v; param n: int = 30\n boundary { i: periodic, j: periodic }\n repeat n { u, v = move(u, v) }\n}\n\
                stencil move { in u, v; out a, b; b = v + 0.1*(u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u); a = u + 0.1*v }";
    let stream = gpu.stream().unwrap();
    let found = [None, Some(&stream)].map(|stream| {
        let job = Job::new(&Source::new("wave.stn", wave), None).unwrap().on(Domain::Rows(Grid::rows(128, 64, 5)));
        let job = job.drawing(Drawing::Inputs).device(Device::Cuda(0));
        // SAFETY: the stream is there until the end.
        let job = stream.into_iter().fold(job, |job, stream| unsafe { job.stream(stream.handle()) });
        let mut run = job.start().unwrap();
        run.step(7).unwrap();
        let between = run.get("u").unwrap();
        run.finish().unwrap();
        (between, run.get("u").unwrap(), run.get("v").unwrap())
    });
    assert_eq!(found[0], found[1]);
}

/// What an array holds is changed in place, call after call; and the same kernel takes other arrays.
#[test]
fn arrays_are_changed_in_place_and_exchanged() {
    let text = "stencil push { in a on (i, j); inout u; out b; u = u[i-1] + a; b = u[i+1] }";
    let (a, shape) = (vec![1.0; 24], [2, 4, 6]);
    for device in [Device::Cpu, Device::Emulate, Device::Native] {
        let job = || Job::new(&Source::new("push.stn", text), None).unwrap().device(device);
        // Rows and levels with room between them, which stays.
        let [mut u, mut b, mut other, mut others] = [0; 4].map(|_| (0..80).map(f64::from).collect::<Vec<f64>>());
        let before = u.clone();
        let strides = [40, 7, 1];
        // SAFETY: all outlive the call.
        let own = |numbers: &mut Vec<f64>| -> Lent<'static> {
            unsafe { std::mem::transmute(Lent::write(numbers, &shape).unwrap().strided(&strides).unwrap()) }
        };
        let padded = vec![1.0; 28];
        let plane = || -> Lent<'static> {
            let lent = Lent::read(&padded, &[4, 6]).unwrap().strided(&[7, 1]).unwrap();
            // SAFETY: as above.
            unsafe { std::mem::transmute(lent) }
        };
        let arrays = |u, b| Arrays::default().read("a", plane()).update("u", u).write("b", b);
        let mut call = job().call(arrays(own(&mut u), own(&mut b))).unwrap();
        assert!(call.updates());
        let place = |k: usize, j: usize, i: usize| 40 * k + 7 * j + i;
        let mut expected = before.clone();
        for _ in 0..3 {
            call.run().unwrap();
            let held = expected.clone();
            for (k, j, i) in (0..48).map(|n| (n / 24, n / 6 % 4, n % 6)).filter(|(_, _, i)| (1..5).contains(i)) {
                expected[place(k, j, i)] = held[place(k, j, i - 1)] + 1.0;
                assert_eq!(b[place(k, j, i)], held[place(k, j, i + 1)], "{device}");
            }
            assert_eq!(u, expected, "{device}");
        }
        call.lend(arrays(own(&mut other), own(&mut others))).unwrap();
        call.run().unwrap();
        assert_eq!((u == expected, other[1], others[1]), (true, 1.0, 2.0), "{device}");
        let dense = |numbers: &mut Vec<f64>| -> Lent<'static> {
            // SAFETY: as above.
            unsafe { std::mem::transmute(Lent::write(numbers, &shape).unwrap()) }
        };
        let rows = Lent::read(&a, &[4, 6]).unwrap();
        let all = Arrays::default().read("a", rows).update("u", dense(&mut u)).write("b", dense(&mut b));
        assert_eq!(
            told(call.lend(all)),
            "the arrays lie in another way than those that the call was made for\n  make another one: `Job::call`"
        );
        let two = arrays(own(&mut u), own(&mut b)).read("u", own(&mut other));
        assert!(told(call.lend(two)).starts_with("`u` is changed in place, and an array is lent to be read"));
        let wrong = Arrays::default().update("b", own(&mut b));
        assert!(told(call.lend(wrong)).starts_with("`b` is no `inout` field: what it held is not read"));
        let one = Arrays::default().read("a", plane()).update("u", own(&mut u));
        let lacking = job().lacking(&one).unwrap();
        assert_eq!(lacking.len(), 1);
        assert_eq!((&*lacking[0].name, &lacking[0].shape[..], lacking[0].element), ("b", &shape[..], Element::F64));
        assert_eq!(told(job().lacking(&one.write("c", own(&mut b)))), "stencil `push` has no output `c`");
    }
}

fn told<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "nothing".to_owned(),
        Err(Error { message, help: Some(help), .. }) => format!("{message}\n  {help}"),
        Err(error) => error.message,
    }
}

#[test]
fn what_cannot_be_lent_is_told() {
    let text = "stencil mix { in a; in c on (k); inout u; param dt: real; out b; let m = dt * (a[i-1] + a[i+1]) + c; b = m; u = u[j-1] + m }";
    let job = || Job::new(&Source::new("mix.stn", text), None).unwrap().set("dt", 0.5).device(Device::Emulate);
    let numbers = vec![1.0f64; 200];
    let truths = vec![true; 200];
    let shape = [2, 5, 6];
    let read = || Lent::read(&numbers, &shape).unwrap();
    let levels = || Lent::read(&numbers, &[2]).unwrap();
    let wide = |row| read().strided(&[60, row, 1]).unwrap();
    let (mut one, mut two) = (vec![0.0f64; 200], vec![0.0f64; 200]);
    let mut call = |job: Job, a: Lent, c: Lent, change: &dyn Fn(Arrays<'static>) -> Arrays<'static>| {
        // SAFETY: all outlive the call.
        let own = |lent: Lent| -> Lent<'static> { unsafe { std::mem::transmute(lent) } };
        let (b, u) = (Lent::write(&mut one, &shape).unwrap(), Lent::write(&mut two, &shape).unwrap());
        let arrays = Arrays::default().read("a", own(a)).read("c", own(c)).read("u", own(read()));
        told(job.call(change(arrays.write("b", own(b)).write("u", own(u)))))
    };
    let as_it_is = |arrays: Arrays<'static>| arrays;
    let mut all = vec![
        call(job(), read(), levels(), &as_it_is),
        call(job().set("dt", "nan"), read(), levels(), &as_it_is),
        call(job(), Lent::read(&numbers, &[5, 2, 6]).unwrap(), levels(), &as_it_is),
        call(job(), read(), Lent::read(&numbers, &[3]).unwrap(), &as_it_is),
        call(job(), Lent::read(&truths, &shape).unwrap(), levels(), &as_it_is),
        call(job(), wide(7), levels(), &as_it_is),
        call(job(), read().strided(&[1, 2, 12]).unwrap(), levels(), &as_it_is),
        call(job(), read().strided(&[1, 13, 2]).unwrap(), levels(), &as_it_is),
        call(job(), read().strided(&[3, 12, 2]).unwrap(), levels(), &as_it_is),
        call(job(), read(), levels().strided(&[2]).unwrap(), &as_it_is),
        call(job().on(Domain::Rows(Grid::rows(6, 5, 3))), read(), levels(), &as_it_is),
        call(job().device(Device::Cpu).precision(Precision::F32), read(), levels(), &as_it_is),
    ];
    let arrays = || Arrays::default().read("a", read()).read("c", levels()).read("u", read());
    all.push(told(job().call(arrays())));
    all.push(told(job().call(arrays().read("a", read()))));
    all.push(told(job().call(arrays().read("d", read()))));
    all.push(told(job().call(arrays().write("a", read()))));
    all.push(told(job().call(arrays().write("b", read()))));
    let mut both = vec![0.0f64; 400];
    let (b, u) = both.split_at_mut(60);
    let on_each_other = Lent::write(&mut u[..200], &shape).unwrap().strided(&[3, 6, 1]).unwrap();
    all.push(told(job().call(arrays().write("b", Lent::write(b, &shape).unwrap()).write("u", on_each_other))));
    let address = numbers.as_ptr() as u64;
    let at = |memory, address, is_writable| {
        // SAFETY: nothing is computed.
        unsafe { Lent::at(memory, address, Element::F64, &shape, &[30, 6, 1], is_writable) }.unwrap()
    };
    use stencilc_runtime::lent::Memory::{Device as OnGpu, Host};
    let with =
        |b| told(job().call(arrays().write("b", b).write("u", Lent::write(&mut vec![0.0f64; 60], &shape).unwrap())));
    all.push(with(at(Host, address + 8, true)));
    all.push(with(at(Host, address + 3, true)));
    all.push(with(at(OnGpu, 512, true)));
    let program = "program twice { inout a; a = half(a); a = half(a) }\nstencil half { in a; out b; b = 0.5*a }";
    all.push(told(Job::new(&Source::new("twice.stn", program), None).unwrap().call(Arrays::default())));
    let over = "mesh plane { set cell }\nstencil half over plane.cell { in a; out b; b = 0.5*a }";
    all.push(told(Job::new(&Source::new("half.stn", over), None).unwrap().call(Arrays::default())));
    insta::assert_snapshot!(all.join("\n"));
}

/// Numbers that say levels are looked at each time that a call is run, and whenever a field is put.
#[test]
fn levels_that_lent_numbers_say_are_looked_at() {
    let text = "stencil s { in a; in n: int; out b; b = a[k + n] - a[i-1, k + n[i-1]] }";
    let job = || Job::new(&Source::new("s.stn", text), None).unwrap();
    let a: Vec<f64> = (0..24).map(|at| f64::from(at * at)).collect();
    let fine: Vec<i32> = (0..24).map(|at| [1, 0, 1, -1][at as usize / 6 % 4]).collect();
    let wrong: Vec<i32> = fine.iter().enumerate().map(|(at, &own)| if at == 20 { 3 } else { own }).collect();
    let shape = [4, 2, 3];
    let told =
        |error: Error| assert!(error.message.contains("`n` is 3 at (i, j) = (2, 0), level 3"), "{}", error.message);
    for device in [Device::Cpu, Device::Emulate, Device::Native] {
        let run = |numbers: &[i32]| {
            let mut b = vec![0.0; 24];
            let arrays = Arrays::default()
                .read("a", Lent::read(&a, &shape).unwrap())
                .read("n", Lent::read(numbers, &shape).unwrap())
                .write("b", Lent::write(&mut b, &shape).unwrap());
            job().device(device).call(arrays).unwrap().run().map(|()| b)
        };
        told(run(&wrong).unwrap_err());
        let found = run(&fine).unwrap();
        let at = |i: usize, j: usize, k: usize| {
            let from = (k * 2 + j) * 3 + i;
            a[((k as i32 + fine[from]) as usize * 2 + j) * 3 + i]
        };
        assert_eq!(found[(3 * 2 + 1) * 3 + 2], at(2, 1, 3) - at(1, 1, 3));
    }
    let array = |numbers: &[i32]| Array { shape: shape.to_vec(), data: Data::I32(numbers.to_vec()) };
    let given = Array { shape: shape.to_vec(), data: Data::F64(a.clone()) };
    let start =
        |numbers: &[i32]| job().array("a", given.clone()).array("n", array(numbers)).device(Device::Cpu).start();
    told(start(&wrong).err().unwrap());
    let mut run = start(&fine).unwrap();
    told(run.put("n", &array(&wrong)).unwrap_err());
    run.put("n", &array(&fine)).unwrap();
    run.finish().unwrap();
}
