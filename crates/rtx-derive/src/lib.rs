//! Derive macros of RustyTorch++.
//!
//! [`Module`] implements `rtx_tensor::Tree`, the trait of structures of tensors, field by field.

mod attributes;
mod module;

use proc_macro::TokenStream;

/// Implements `rtx_tensor::Tree` for a structure with named fields.
///
/// Every field is visited in order of declaration, under the path of the structure joined with the field's
/// name by a dot. On fields:
/// - `#[module(buffer)]`: part of the structure, but no optimizer changes it;
/// - `#[module(skip)]`: no tensors inside; cloned when the structure is mapped.
///
/// On the structure, `#[module(crate = "path")]` names the crate that exports `Tree`, `Visit` and `Tensor`
/// (default `::rtx_tensor`).
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    module::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
