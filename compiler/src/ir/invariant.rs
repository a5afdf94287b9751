//! Shares invariants: one value of each definition that is the same on all columns, since paths along columns lead nowhere for it.

use super::{Handle, Node, Path, Stencil};

/// Of each definition whether it reads a field with horizontal axes, itself or through others. The value of one that
/// does not is the same on all columns, so a path to it leads nowhere and needs no cell.
pub fn varying(stencil: &Stencil) -> Vec<bool> {
    stencil.of_defs(|body, varying| body.any(varying, |node| varies_across(stencil, node)))
}

/// Whether a node by itself differs from column to column.
pub fn varies_across(stencil: &Stencil, node: &Node) -> bool {
    match node {
        Node::Read { field, .. } => stencil.fields[*field].place.horizontal,
        Node::Present { .. } | Node::InZone(_) => true,
        _ => false,
    }
}

/// `stencil` with one value of each definition that is the same on all columns, whatever paths it is used at.
pub fn share_invariants(stencil: &Stencil) -> Stencil {
    let varying = varying(stencil);
    stencil.map_bodies(|body| {
        body.map_nodes(|node| match node {
            Node::Use { def, path } if !varying[def.index()] => {
                Node::Use { def: *def, path: Path::levels_only(path.levels()) }
            }
            node => node.clone(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Body;
    use crate::source::Source;

    #[test]
    fn what_no_column_changes_is_one_value_a_level() {
        let text = "stencil s { in a; in w on (k); out b
            let g = 2 * w; let h = g[i+1] + k; let d = h[j-1] + a
            b = if k >= 1 { h[i+2, k-1] * d[i+1] } else { d }
        }";
        let shared = share_invariants(&crate::check(&Source::new("own", text)).stencils[0]);
        let bodies = shared.defs.iter().map(|(_, def)| &def.body).chain(shared.stores.iter().map(|store| &store.body));
        let paths = bodies.flat_map(Body::iter).filter_map(|(_, node)| match node {
            Node::Use { def, path } => Some(format!("{}{path}", shared.defs[*def].name)),
            _ => None,
        });
        assert_eq!(paths.collect::<Vec<_>>(), ["g", "h", "h[k-1]", "d[i+1]", "d"]);
    }
}
