//! The `#[module(..)]` attributes.

use syn::{Attribute, LitStr, Path, Result};

/// What happens to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A structure of tensors.
    Tree,
    /// A structure of tensors that no optimizer changes.
    Buffer,
    /// Plain data.
    Skip,
}

/// Reads the role of a field.
pub(crate) fn role(attributes: &[Attribute]) -> Result<Role> {
    let mut role = Role::Tree;
    for a in attributes.iter().filter(|a| a.path().is_ident("module")) {
        a.parse_nested_meta(|meta| {
            let new = if meta.path.is_ident("buffer") {
                Role::Buffer
            } else if meta.path.is_ident("skip") {
                Role::Skip
            } else {
                return Err(meta.error("a field takes `#[module(buffer)]` or `#[module(skip)]`"));
            };
            if role != Role::Tree && role != new {
                return Err(meta.error("a field is either a buffer or skipped, not both"));
            }
            role = new;
            Ok(())
        })?;
    }
    Ok(role)
}

/// Reads the crate that exports `Tree`.
pub(crate) fn crate_path(attributes: &[Attribute]) -> Result<Path> {
    let mut path = None;
    for a in attributes.iter().filter(|a| a.path().is_ident("module")) {
        a.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("a structure takes `#[module(crate = \"path\")]`"));
            }
            path = Some(meta.value()?.parse::<LitStr>()?.parse::<Path>()?);
            Ok(())
        })?;
    }
    Ok(path.unwrap_or_else(|| syn::parse_quote!(::rtx_tensor)))
}
