//! Which variants of a kernel are meant: of each choice names, or all.

use super::ALL;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::storage;
use stencilc_compiler::storage::fastest::FASTEST;
use stencilc_compiler::storage::fields::FIELDS;
use stencilc_compiler::storage::neighbors::NEIGHBORS;

/// Of each choice names, or [`ALL`].
#[derive(clap::Args)]
pub struct VariantArgs {
    /// How neighbours are reached; several with commas between them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::accesses_or_all(), default_value = ALL)]
    access: Vec<String>,
    /// How the grid is stored; several with commas between them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::storages_or_all(), default_value = ALL)]
    storage: Vec<String>,
    /// Which axis is fastest in memory; several with commas between them. columns if not given, levels for `patches`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::fastest_or_all())]
    fastest: Option<Vec<String>>,
    /// Which neighbours a storage's tables hold; several with commas between them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::neighbors_or_all(), default_value = Choices::default().neighbors.name())]
    neighbors: Vec<String>,
    /// The order of cells, for storages with tables; several with commas between them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::layouts_or_all(), default_values_t = [Choices::default().layout])]
    layout: Vec<String>,
    /// How several fields lie in memory; several with commas between them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = super::fields_or_all(), default_value = Choices::default().fields.name())]
    fields: Vec<String>,
}

impl VariantArgs {
    /// Every variant that is meant, all else as usual. What is asked for by name is among them even if it makes no sense:
    /// plans say why.
    pub fn choices(&self) -> Vec<Choices> {
        let is_chosen = |own: &Choices| {
            // A storage without tables has no choice of neighbours and layouts.
            let has_tables = storage::find(&own.storage).is_ok_and(|storage| storage.has_tables());
            chosen(&self.storage, &own.storage)
                && chosen(&self.access, &own.access)
                && match &self.fastest {
                    Some(fastest) => chosen(fastest, own.fastest.name()),
                    None => own.fastest == Choices::usual_fastest(&own.access),
                }
                && (!has_tables || chosen(&self.neighbors, own.neighbors.name()))
                && (!has_tables || chosen(&self.layout, &own.layout))
                && chosen(&self.fields, own.fields.name())
        };
        let all: Vec<Choices> = variants().filter(is_chosen).collect();
        if all.is_empty() { vec![self.only()] } else { all }
    }

    /// Whether they leave strategy and storage open.
    pub fn is_open(&self) -> bool {
        [&self.access, &self.storage].into_iter().all(|names| *names == [ALL])
    }

    fn only(&self) -> Choices {
        let first = |names: &[String]| names.first().filter(|name| *name != ALL).cloned();
        let access = first(&self.access).unwrap_or(Choices::default().access);
        let storage = first(&self.storage).unwrap_or_else(|| Choices::usual_storage(&access));
        let named = self.fastest.as_ref().and_then(|names| first(names));
        let fastest = named.and_then(|name| FASTEST.into_iter().find(|own| own.name() == name));
        let fastest = fastest.unwrap_or_else(|| Choices::usual_fastest(&access));
        let usual = Choices::default();
        let neighbors = NEIGHBORS.into_iter().find(|own| first(&self.neighbors).as_deref() == Some(own.name()));
        let fields = FIELDS.into_iter().find(|own| first(&self.fields).as_deref() == Some(own.name()));
        Choices {
            block: Choices::usual_block(&access),
            neighbors: neighbors.unwrap_or(usual.neighbors),
            layout: first(&self.layout).unwrap_or_else(|| usual.layout.clone()),
            fields: fields.unwrap_or(usual.fields),
            storage,
            fastest,
            access,
            ..usual
        }
    }
}

fn chosen(choices: &[String], name: &str) -> bool {
    choices.iter().any(|choice| choice == ALL || choice == name)
}
