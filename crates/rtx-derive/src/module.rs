//! The code generated for `#[derive(Module)]`.

use crate::attributes::{Role, crate_path, role};
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Fields, Generics, Ident, Path, Result, Type, WherePredicate};

/// The implementation of `Tree`.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = match &input.data {
        Data::Struct(s) => match &s.fields {
            Fields::Named(f) => &f.named,
            Fields::Unnamed(_) | Fields::Unit => {
                return Err(Error::new_spanned(
                    &input.ident,
                    "Module can be derived for structures with named fields only: the names make the \
                     paths of the parameters; give the fields names, or implement `Tree` by hand",
                ));
            }
        },
        Data::Enum(_) | Data::Union(_) => {
            return Err(Error::new_spanned(
                &input.ident,
                "Module can be derived for structures with named fields only, not for an enum or a \
                 union; implement `Tree` by hand, calling `visit` and `map` of the variant's fields",
            ));
        }
    };
    let krate = crate_path(&input.attrs)?;
    let mut generics = input.generics.clone();
    let mut visits = Vec::new();
    let mut maps = Vec::new();
    for field in fields {
        let Some(name) = &field.ident else { continue };
        let role = role(&field.attrs)?;
        bound(&mut generics, &input.generics, &field.ty, role, &krate);
        let (visit, map) = field_code(name, &field.ty, role, &krate);
        visits.push(visit);
        maps.push(map);
    }
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Tree for #name #type_generics #where_clause {
            #[allow(unused_variables)]
            fn visit(
                &self,
                path: &str,
                trainable: bool,
                f: &mut dyn ::core::ops::FnMut(#krate::Visit<'_>, &#krate::Tensor),
            ) {
                #(#visits)*
            }

            #[allow(unused_variables)]
            fn map(
                &self,
                path: &str,
                trainable: bool,
                f: &mut dyn ::core::ops::FnMut(#krate::Visit<'_>, &#krate::Tensor) -> #krate::Tensor,
            ) -> Self {
                Self { #(#maps)* }
            }
        }
    })
}

/// The statement that visits a field and the initialiser that maps it.
fn field_code(name: &Ident, ty: &Type, role: Role, krate: &Path) -> (TokenStream, TokenStream) {
    let text = name.to_string();
    let text = text.strip_prefix("r#").unwrap_or(&text);
    let path = quote! {
        &if path.is_empty() {
            ::std::string::String::from(#text)
        } else {
            ::std::format!("{}.{}", path, #text)
        }
    };
    let trainable = match role {
        Role::Skip => {
            let map = quote! { #name: <#ty as ::core::clone::Clone>::clone(&self.#name), };
            return (TokenStream::new(), map);
        }
        Role::Tree => quote! { trainable },
        Role::Buffer => quote! { false },
    };
    (
        quote! { <#ty as #krate::Tree>::visit(&self.#name, #path, #trainable, f); },
        quote! { #name: <#ty as #krate::Tree>::map(&self.#name, #path, #trainable, f), },
    )
}

/// Asks of a generic field what its role needs; fields of fixed types need no bound.
fn bound(generics: &mut Generics, declared: &Generics, ty: &Type, role: Role, krate: &Path) {
    let mentions = |tokens: TokenStream| {
        declared
            .type_params()
            .any(|p| contains(tokens.clone(), &p.ident))
    };
    if mentions(ty.to_token_stream()) {
        let predicate: WherePredicate = match role {
            Role::Skip => syn::parse_quote!(#ty: ::core::clone::Clone),
            Role::Tree | Role::Buffer => syn::parse_quote!(#ty: #krate::Tree),
        };
        generics.make_where_clause().predicates.push(predicate);
    }
}

fn contains(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|t| match t {
        TokenTree::Ident(i) => i == *ident,
        TokenTree::Group(g) => contains(g.stream(), ident),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
