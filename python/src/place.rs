//! Where something is computed: extents of a grid, cells that say which their neighbours are, meshes.

use crate::error::{apart, caught, wrong};
use crate::program::{Held, copied};
use crate::view::shape_text;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_runtime::job::Domain;
use stencilc_runtime::{Array, Data, grid, mesh};

/// A mesh.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Mesh {
    mesh: mesh::Mesh,
    /// The file that it was read from, if it was.
    #[pyo3(get)]
    path: Option<PathBuf>,
}

/// A path that stays the same, whatever folder is entered later.
fn stays(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Reads the file of a mesh.
#[pyfunction]
pub fn read_mesh(py: Python<'_>, path: PathBuf) -> PyResult<Mesh> {
    let mesh = apart(py, || mesh::load(&path))?;
    Ok(Mesh { mesh, path: Some(stays(path)) })
}

/// Makes a mesh of arrays, which are copied; their names say what they are.
#[pyfunction]
pub fn make_mesh(py: Python<'_>, arrays: &Bound<'_, PyDict>) -> PyResult<Mesh> {
    caught(py, || {
        let arrays = arrays.iter().map(|(name, array)| {
            let name: String = name.extract()?;
            // How many elements a set has is a number.
            if let Ok(size) = array.extract::<i32>() {
                return Ok((name, Array { shape: vec![1], data: Data::I32(vec![size]) }));
            }
            let array = copied(py, &name, &array)?;
            Ok((name, array))
        });
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        let mesh = apart(py, || mesh::Mesh::of_arrays(arrays))?;
        Ok(Mesh { mesh, path: None })
    })
}

#[pymethods]
impl Mesh {
    /// The sets, and how many elements each has.
    #[getter]
    fn sets(&self) -> BTreeMap<&str, usize> {
        self.mesh.sets.iter().map(|own| (own.name.as_str(), own.size)).collect()
    }

    /// The names of maps, as `edge.cells`, with the set where each leads and how many slots it has.
    #[getter]
    fn maps(&self) -> BTreeMap<String, (&str, usize)> {
        let name = |number: usize| self.mesh.sets.get(number).map_or("", |own| own.name.as_str());
        self.mesh
            .maps
            .iter()
            .map(|own| (format!("{}.{}", name(own.from), own.name), (name(own.to), own.arity)))
            .collect()
    }

    /// The names of fields, with the set of each.
    #[getter]
    fn fields(&self) -> BTreeMap<&str, &str> {
        let name = |number: usize| self.mesh.sets.get(number).map_or("", |own| own.name.as_str());
        self.mesh.fields.iter().map(|own| (own.name.as_str(), name(own.set))).collect()
    }

    /// The numbers of a map, or of a field, as an array of NumPy's.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let handed_out = |shape, data| numpy.call_method1("asarray", (Held::new(shape, data),));
        let set_name = |number: usize| self.mesh.sets.get(number).map_or("", |own| own.name.as_str());
        let map = self.mesh.maps.iter().find(|own| format!("{}.{}", set_name(own.from), own.name) == name);
        if let Some(map) = map {
            let rows = self.mesh.sets.get(map.from).map_or(0, |own| own.size);
            return handed_out(vec![rows, map.arity], Data::I32(map.table.clone()));
        }
        if let Some(field) = self.mesh.fields.iter().find(|own| own.name == name) {
            let rows = self.mesh.sets.get(field.set).map_or(1, |own| own.size).max(1);
            let each = field.data.len() / rows;
            let shape = if each > 1 { vec![rows, each] } else { vec![field.data.len()] };
            return handed_out(shape, field.data.clone());
        }
        let maps = self.maps().into_keys();
        let names: Vec<String> = maps.chain(self.fields().into_keys().map(str::to_owned)).collect();
        Err(wrong(py, format!("the mesh has no map or field `{name}`"), format!("it has {}", names.join(", "))))
    }

    fn __repr__(&self) -> String {
        let sets: Vec<String> = self.mesh.sets.iter().map(|own| format!("{}: {}", own.name, own.size)).collect();
        format!("<stencilc mesh {}, {}>", self.mesh.origin, sets.join(", "))
    }
}

/// A grid of cells that say which their neighbours are.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Cells {
    adjacency: Arc<Adjacency>,
    /// The file that it was read from.
    #[pyo3(get)]
    path: PathBuf,
}

/// Reads the file of such a grid.
#[pyfunction]
pub fn read_cells(py: Python<'_>, path: PathBuf) -> PyResult<Cells> {
    let adjacency = apart(py, || grid::load(&path))?;
    Ok(Cells { adjacency: Arc::new(adjacency), path: stays(path) })
}

#[pymethods]
impl Cells {
    fn __len__(&self) -> usize {
        self.adjacency.cells()
    }

    fn __repr__(&self) -> String {
        format!("<stencilc grid of {} cells>", self.adjacency.cells())
    }
}

/// Where something is computed, by what Python calls it: a mesh, cells, or extents as those of an array.
///
/// # Errors
/// It is none of these.
pub fn domain_of(py: Python<'_>, place: Option<&Bound<'_, PyAny>>, levels: Option<usize>) -> PyResult<Option<Domain>> {
    let Some(place) = place.filter(|own| !own.is_none()) else { return Ok(None) };
    if let Ok(mesh) = place.cast::<Mesh>() {
        return Ok(Some(Domain::Mesh { mesh: mesh.get().mesh.clone(), levels }));
    }
    if let Ok(cells) = place.cast::<Cells>() {
        return Ok(Some(Domain::Cells { adjacency: Arc::clone(&cells.get().adjacency), levels }));
    }
    let Ok(shape) = place.extract::<Vec<usize>>() else {
        let kind = place.get_type().name()?;
        let help = "give the shape of its arrays, (nk, nj, ni), or what `stencilc.mesh` or `stencilc.cells` reads";
        return Err(wrong(py, format!("a {kind} is no grid and no mesh"), help));
    };
    match *shape.as_slice() {
        [nk, nj, ni] => Ok(Some(Domain::Rows(Grid::rows(ni, nj, nk)))),
        [nj, ni] => Ok(Some(Domain::Rows(Grid::rows(ni, nj, 1)))),
        _ => {
            let shown = shape_text(py, &shape);
            Err(wrong(
                py,
                format!("{shown} are no extents of a grid"),
                "give the shape of its arrays: (nk, nj, ni), or (nj, ni) of one level",
            ))
        }
    }
}
