//! The text of OP2's airfoil: a line `nnode ncell nedge nbedge`, then a line for each node (x and y), each cell (four nodes),
//! each interior edge (two nodes, two cells) and each boundary edge (two nodes, a cell, and which boundary it is on).
//!
//! Source: G. R. Mudalige et al., "OP2: An active library framework for solving unstructured mesh-based applications on
//! multi-core and many-core architectures" (InPar, 2012), whose airfoil reads `new_grid.dat`.

use super::{Field, Map, Mesh, Set};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::given::Real;
use std::io::{BufRead, Lines};
use std::str::FromStr;

/// What stands in a line of each kind, for messages.
const HEADER: &str = "the first line says how many nodes, cells, interior edges and boundary edges there are";
const NODE: &str = "a node is a line of two numbers: x and y";
const CELL: &str = "a cell is a line of its four nodes";
const EDGE: &str = "an interior edge is a line of two nodes and the two cells beside it";
const BEDGE: &str = "a boundary edge is a line of two nodes, a cell, and which boundary it is on";

/// Whether a file may be such a text: its first line has four whole numbers.
pub(super) fn is_header(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.split_whitespace().count() == 4 && first.split_whitespace().all(|word| word.parse::<usize>().is_ok())
}

/// Reads a mesh, which is not checked yet.
pub(super) fn read(file: impl BufRead) -> Result<Mesh> {
    let mut text = Text { lines: file.lines(), line: 0 };
    let header = text.next("header")?.ok_or_else(|| Error::input("it is empty").help(HEADER))?;
    let [nodes, cells, edges, bedges] = text.numbers::<usize, 4>(&header, HEADER)?;
    let mut x = Vec::new();
    text.each("node", nodes, NODE, |[Real(a), Real(b)]: [Real; 2]| x.extend([a, b]))?;
    let mut cell_nodes = Vec::new();
    text.each("cell", cells, CELL, |row: [i32; 4]| cell_nodes.extend(row))?;
    let (mut edge_nodes, mut edge_cells) = (Vec::new(), Vec::new());
    text.each("interior edge", edges, EDGE, |[a, b, c, d]: [i32; 4]| {
        edge_nodes.extend([a, b]);
        edge_cells.extend([c, d]);
    })?;
    let (mut bedge_nodes, mut bedge_cell, mut bound) = (Vec::new(), Vec::new(), Vec::new());
    text.each("boundary edge", bedges, BEDGE, |[a, b, c, d]: [i32; 4]| {
        bedge_nodes.extend([a, b]);
        bedge_cell.push(c);
        bound.push(d);
    })?;
    if let Some(line) = text.next("end")? {
        let shown: String = line.trim().chars().take(40).collect();
        return Err(text.wrong(&format!("\"{}\" follows the last boundary edge", shown.escape_debug())).help(HEADER));
    }
    Ok(airfoil([nodes, edges, bedges, cells], [edge_nodes, edge_cells, bedge_nodes, bedge_cell, cell_nodes], x, bound))
}

/// A mesh with the sets and maps of OP2's airfoil. `sizes` are those of nodes, edges, bedges and cells.
pub(super) fn airfoil(sizes: [usize; 4], tables: [Vec<i32>; 5], x: Vec<f64>, bound: Vec<i32>) -> Mesh {
    let [node, edge, bedge, cell] = [0, 1, 2, 3];
    let sets = ["node", "edge", "bedge", "cell"].into_iter().zip(sizes);
    let maps =
        [("nodes", edge, node, 2), ("cells", edge, cell, 2), ("nodes", bedge, node, 2), ("cell", bedge, cell, 1)];
    let maps = maps.into_iter().chain([("nodes", cell, node, 4)]).zip(tables);
    Mesh {
        origin: String::new(),
        sets: sets.map(|(name, size)| Set { name: name.to_owned(), size }).collect(),
        maps: maps
            .map(|((name, from, to, arity), table)| Map { name: name.to_owned(), from, to, arity, table })
            .collect(),
        fields: vec![
            Field { name: "x".to_owned(), set: node, map: None, parts: 2, data: Data::F64(x) },
            Field { name: "bound".to_owned(), set: bedge, map: None, parts: 1, data: Data::I32(bound) },
        ],
    }
}

/// A text, read line by line.
struct Text<R> {
    lines: Lines<R>,
    /// How many lines were read.
    line: usize,
}

impl<R: BufRead> Text<R> {
    /// The next line that is not empty.
    fn next(&mut self, what: &str) -> Result<Option<String>> {
        while let Some(line) = self.lines.next() {
            self.line += 1;
            let line = line.map_err(|error| self.wrong(&format!("the {what} cannot be read: {error}")))?;
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// An error at the line that was read last.
    fn wrong(&self, what: &str) -> Error {
        Error::input(format!("line {}: {what}", self.line))
    }

    /// The numbers of a line.
    fn numbers<T: FromStr + Copy + Default, const N: usize>(&self, line: &str, meaning: &str) -> Result<[T; N]> {
        let mut numbers = [T::default(); N];
        let mut words = 0;
        for word in line.split_whitespace() {
            let number = word.parse().map_err(|_| {
                let shown: String = word.escape_debug().take(40).collect();
                self.wrong(&format!("\"{shown}\" is not the number that should be there")).help(meaning)
            })?;
            if let Some(place) = numbers.get_mut(words) {
                *place = number;
            }
            words += 1;
        }
        if words != N {
            let count = if words == 1 { "there is 1 number".to_owned() } else { format!("there are {words} numbers") };
            return Err(self.wrong(&format!("{count} where {N} are needed")).help(meaning));
        }
        Ok(numbers)
    }

    /// Takes the numbers of `count` lines.
    fn each<T: FromStr + Copy + Default, const N: usize>(
        &mut self,
        what: &str,
        count: usize,
        meaning: &str,
        mut take: impl FnMut([T; N]),
    ) -> Result<()> {
        for number in 0..count {
            let Some(line) = self.next(what)? else {
                return Err(Error::input(format!("it ends after {number} of {count} {what}s"))
                    .help("the file is damaged, or its first line says too much; write it again"));
            };
            take(self.numbers(&line, meaning)?);
        }
        Ok(())
    }
}
