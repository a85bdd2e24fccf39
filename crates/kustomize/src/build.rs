//! A build: directories in their order, transformers on what they give, and the steps at the end.

mod finish;
mod steps;

use std::sync::Arc;

use bellwether_json::yaml::{to_yaml, value_from_yaml};
use serde_json::Value;

use crate::config::{self, Config};
use crate::error::{Error, Problem, Result};
use crate::generator::{self, Kind};
use crate::kustomization::{FILE_NAMES, Kustomization, Variable};
use crate::limits::{MAX_DEPTH, MAX_DIRECTORIES, MAX_FILE_BYTES};
use crate::merge_schema::Schemas;
use crate::needs::{Needs, is_inline, is_remote};
use crate::order::Order;
use crate::origin::{ConfiguredBy, Origin};
use crate::resource::Resource;
use crate::resource_list::ResourceList;
use crate::{Tree, path, plugin, variable};

/// What a caller may choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The order of objects, unless the kustomization says.
    pub order: Order,
    /// True if files may be outside of the directory of their kustomization.
    pub allow_outside: bool,
    /// True if `components`, `policies` and `workflow.steps` of an Application merge by name and
    /// `traits` by type. kustomize itself has no schema of Applications and replaces these lists.
    pub merge_applications: bool,
}

/// The result of a build.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Build {
    /// The objects, in order.
    pub objects: Vec<Value>,
    /// What the user should know, such as fields that are deprecated.
    pub warnings: Vec<String>,
}

impl Build {
    /// The text that `kustomize build` prints.
    pub fn to_yaml(&self) -> String {
        let texts: Vec<String> = self.objects.iter().map(to_yaml).collect();
        texts.join("---\n")
    }
}

/// Builds the kustomization in a directory of the tree.
pub fn build(tree: &Tree, directory: &str, options: Options) -> Result<Build, Error> {
    let mut builder = Builder {
        tree,
        options,
        schemas: Schemas {
            definitions: None,
            applications: options.merge_applications,
        },
        directories: 0,
        needs: Needs::default(),
        warnings: Vec::new(),
    };
    let root = path::clean(directory);
    let target = builder.load(&root)?;
    let file = target.file.clone();
    let sort_options = target.kustomization.sort_options.clone();
    let metadata = target.kustomization.build_metadata.clone();
    let origin = (!metadata.is_empty()).then(Origin::default);
    let place = Place {
        ancestors: &[],
        origin,
        metadata: &metadata,
    };
    let accumulated = builder.accumulate(target, Accumulated::default(), &place)?;
    if !builder.needs.is_empty() {
        return Err(Error::Needs(builder.needs));
    }
    let in_file = |problem: Problem| Error::from(problem.in_file(&file));
    let objects = finish::finish(accumulated, sort_options.as_ref(), options.order, &metadata)
        .map_err(in_file)?;
    Ok(Build {
        objects,
        warnings: builder.warnings,
    })
}

/// Reads the files of one directory.
#[derive(Debug, Clone)]
pub(crate) struct Loader<'t> {
    tree: &'t Tree,
    root: String,
    allow_outside: bool,
}

impl<'t> Loader<'t> {
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn path(&self, file: &str) -> String {
        if is_remote(file) {
            return file.to_owned();
        }
        path::join(&self.root, file)
    }

    /// The content of a file.
    pub(crate) fn bytes(&self, file: &str) -> Result<&'t [u8]> {
        let path = self.path(file);
        if !self.allow_outside && !path::is_inside(&path, &self.root) {
            let message = format!(
                "security: the file '{path}' is not in or below '{}'; move it there, or make a \
                 base of its directory",
                self.root
            );
            return Err(Problem::new(message));
        }
        let content = self
            .tree
            .file(&path)
            .ok_or_else(|| Problem::new(format!("the file '{path}' does not exist")))?;
        if content.len() > MAX_FILE_BYTES {
            let message = format!("larger than {MAX_FILE_BYTES} bytes");
            return Err(Problem::new(message).in_file(&path));
        }
        Ok(content)
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: &str) -> Result<&'t str> {
        std::str::from_utf8(self.bytes(file)?)
            .map_err(|_| Problem::new("not a UTF-8 text").in_file(&self.path(file)))
    }

    /// The content of a YAML file of one document.
    pub(crate) fn yaml(&self, file: &str) -> Result<Value> {
        let in_file = |problem: Problem| problem.in_file(&self.path(file));
        value_from_yaml(self.text(file)?).map_err(|error| in_file(error.into()))
    }

    /// The objects of a file.
    fn resources(&self, file: &str) -> Result<Vec<Resource>> {
        let in_file = |problem: Problem| problem.in_file(&self.path(file));
        Resource::read_all(self.text(file)?).map_err(in_file)
    }
}

/// A directory with its kustomization.
struct Target<'t> {
    loader: Loader<'t>,
    kustomization: Kustomization,
    /// Path of the kustomization file.
    file: String,
}

/// What a directory and its bases come to.
#[derive(Debug, Default)]
pub(crate) struct Accumulated {
    pub(crate) list: ResourceList,
    /// Fields that users configured, beside the defaults.
    pub(crate) config: Config,
    pub(crate) variables: Vec<Variable>,
}

/// Where a directory is in a build.
struct Place<'p> {
    /// Directories that lead here, outermost first.
    ancestors: &'p [String],
    /// What is recorded of origins, if anything.
    origin: Option<Origin>,
    metadata: &'p [String],
}

struct Builder<'t> {
    tree: &'t Tree,
    options: Options,
    schemas: Schemas,
    directories: usize,
    needs: Needs,
    warnings: Vec<String>,
}

impl<'t> Builder<'t> {
    /// Reads the kustomization of a directory.
    fn load(&mut self, root: &str) -> Result<Target<'t>> {
        self.directories += 1;
        if self.directories > MAX_DIRECTORIES {
            let message = format!("a build may visit at most {MAX_DIRECTORIES} directories");
            return Err(Problem::new(message).in_file(root));
        }
        let loader = Loader {
            tree: self.tree,
            root: root.to_owned(),
            allow_outside: self.options.allow_outside,
        };
        let mut names = FILE_NAMES
            .iter()
            .filter(|name| self.tree.file(&path::join(root, name)).is_some());
        let Some(name) = names.next() else {
            let message = format!(
                "unable to find one of '{}' in directory '{root}'",
                FILE_NAMES.join("', '")
            );
            return Err(Problem::new(message));
        };
        if let Some(other) = names.next() {
            let message = format!("found both {name} and {other} in '{root}': remove one");
            return Err(Problem::new(message));
        }
        let file = path::join(root, name);
        let text = loader.text(name)?;
        let kustomization = Kustomization::read(text).map_err(|problem| problem.in_file(&file))?;
        for warning in &kustomization.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        self.use_openapi(&kustomization, &loader)
            .map_err(|problem| problem.in_file(&file))?;
        Ok(Target {
            loader,
            kustomization,
            file,
        })
    }

    /// Takes merge keys from the OpenAPI document that a kustomization names; the outermost counts.
    fn use_openapi(&mut self, kustomization: &Kustomization, loader: &Loader<'_>) -> Result<()> {
        for (key, value) in &kustomization.openapi {
            match key.as_str() {
                "path" if self.schemas.definitions.is_none() => {
                    let mut document = loader.yaml(value)?;
                    let Some(Value::Object(definitions)) =
                        document.get_mut("definitions").map(Value::take)
                    else {
                        let message = "an OpenAPI document needs `definitions`";
                        return Err(Problem::new(message).in_file(&loader.path(value)));
                    };
                    self.schemas.definitions = Some(Arc::new(definitions));
                }
                "path" => {}
                "version" if value == "v1.21.2" => {}
                "version" => {
                    let message =
                        format!("the OpenAPI version {value:?} is not built in; use v1.21.2");
                    return Err(Problem::new(message));
                }
                other => {
                    let message = format!("`openapi` has no field {other:?}; use path or version");
                    return Err(Problem::new(message));
                }
            }
        }
        Ok(())
    }

    /// Adds what a directory asks for to what is there, and transforms all of it.
    fn accumulate(
        &mut self,
        target: Target<'t>,
        mut accumulated: Accumulated,
        place: &Place<'_>,
    ) -> Result<Accumulated, Error> {
        let Target {
            loader,
            kustomization,
            file,
        } = target;
        let in_file = |problem: Problem| Error::from(problem.in_file(&file));
        let mut ancestors = place.ancestors.to_vec();
        ancestors.push(loader.root().to_owned());
        let here = Place {
            ancestors: &ancestors,
            origin: place.origin.clone(),
            metadata: place.metadata,
        };
        self.add_resources(
            &mut accumulated,
            &kustomization.resources,
            &loader,
            &here,
            &file,
        )?;
        add_config(&mut accumulated.config, &kustomization, &loader).map_err(in_file)?;
        self.generate(&mut accumulated, &kustomization, &loader, &here, &file)?;
        for component in &kustomization.components {
            let (target, origin) = self
                .open(component, &loader, &here, true)
                .map_err(in_file)?;
            if let Some(target) = target {
                let place = Place {
                    ancestors: &ancestors,
                    origin,
                    metadata: here.metadata,
                };
                accumulated = self.accumulate(target, accumulated, &place)?;
            }
        }
        self.transform(&mut accumulated, &kustomization, &loader, &here, &file)?;
        variable::declare(
            &mut accumulated.variables,
            &kustomization.vars,
            &mut accumulated.list,
        )
        .map_err(in_file)?;
        Ok(accumulated)
    }

    /// Adds the objects of files and of bases.
    fn add_resources(
        &mut self,
        accumulated: &mut Accumulated,
        entries: &[String],
        loader: &Loader<'t>,
        place: &Place<'_>,
        file: &str,
    ) -> Result<(), Error> {
        let in_file = |problem: Problem| Error::from(problem.in_file(file));
        let text = loader.text(path::base(file)).map_err(in_file)?;
        for entry in entries {
            let at_path = |problem: Problem| in_file(problem.at_path(text, entry));
            if self.tree.file(&loader.path(entry)).is_some() {
                let mut resources = loader.resources(entry).map_err(at_path)?;
                if let Some(origin) = &place.origin {
                    for resource in &mut resources {
                        resource.origin = Some(origin.join(entry));
                    }
                }
                accumulated.list.append_all(resources).map_err(at_path)?;
                continue;
            }
            let (target, origin) = self.open(entry, loader, place, false).map_err(at_path)?;
            let Some(target) = target else {
                continue;
            };
            let inner = Place {
                ancestors: place.ancestors,
                origin,
                metadata: place.metadata,
            };
            let base = self.accumulate(target, Accumulated::default(), &inner)?;
            accumulated
                .list
                .append_all(base.list.resources)
                .map_err(in_file)?;
            accumulated.config.merge(&base.config).map_err(in_file)?;
            for variable in base.variables {
                variable::add(&mut accumulated.variables, variable).map_err(in_file)?;
            }
        }
        Ok(())
    }

    /// Opens a base or a component; `None` if it is remote and still has to be fetched.
    fn open(
        &mut self,
        entry: &str,
        loader: &Loader<'t>,
        place: &Place<'_>,
        is_component: bool,
    ) -> Result<(Option<Target<'t>>, Option<Origin>)> {
        let origin = place.origin.as_ref().map(|origin| origin.join(entry));
        let local = loader.path(entry);
        let root = match self.tree.remote(entry) {
            Some(path) => path.to_owned(),
            _ if self.tree.is_directory(&local) => local,
            _ if is_remote(entry) => {
                self.needs.add_remote(entry);
                return Ok((None, origin));
            }
            _ => {
                let message = format!("'{local}' is neither a file nor a directory");
                return Err(Problem::new(message));
            }
        };
        if place.ancestors.len() >= MAX_DEPTH {
            let message = format!("bases are nested deeper than {MAX_DEPTH} levels at '{root}'");
            return Err(Problem::new(message));
        }
        if let Some(visited) = place
            .ancestors
            .iter()
            .find(|visited| path::is_inside(visited, &root))
        {
            let message =
                format!("cycle detected: '{root}' contains '{visited}', which refers to it");
            return Err(Problem::new(message));
        }
        let target = self.load(&root)?;
        match (is_component, target.kustomization.is_component) {
            (true, false) => {
                let message = "listed under `components`, but its kind is not Component";
                Err(Problem::new(message).in_file(&target.file))
            }
            (false, true) => {
                let message = "a Component: list it under `components` instead of `resources`";
                Err(Problem::new(message).in_file(&target.file))
            }
            _ => Ok((Some(target), origin)),
        }
    }

    fn generate(
        &mut self,
        accumulated: &mut Accumulated,
        kustomization: &Kustomization,
        loader: &Loader<'t>,
        place: &Place<'_>,
        file: &str,
    ) -> Result<(), Error> {
        let in_file = |problem: Problem| Error::from(problem.in_file(file));
        let general = kustomization.generator_options.as_ref();
        let entries = [
            (
                Kind::ConfigMap,
                "ConfigMapGenerator",
                &kustomization.config_map_generator,
            ),
            (
                Kind::Secret,
                "SecretGenerator",
                &kustomization.secret_generator,
            ),
        ];
        let text = loader.text(path::base(file)).map_err(in_file)?;
        for (kind, name, entries) in entries {
            let key = match kind {
                Kind::ConfigMap => "configMapGenerator",
                Kind::Secret => "secretGenerator",
            };
            for (index, entry) in entries.iter().enumerate() {
                let at_item = |problem: Problem| in_file(problem.at_item(text, key, index));
                let mut resource =
                    generator::generate(kind, entry, general, loader).map_err(at_item)?;
                resource.origin = place
                    .origin
                    .as_ref()
                    .map(|origin| origin.builtin(path::base(file), name));
                accumulated.list.absorb(resource).map_err(at_item)?;
            }
        }
        for plugin in self.plugins(&kustomization.generators, loader, place, file)? {
            let mut resource = plugin::generate(&plugin, loader).map_err(in_file)?;
            resource.origin = configured_by(&plugin);
            accumulated.list.absorb(resource).map_err(in_file)?;
        }
        Ok(())
    }

    /// The objects that configure generators or transformers: inline, in files, or in directories.
    fn plugins(
        &mut self,
        entries: &[String],
        loader: &Loader<'t>,
        place: &Place<'_>,
        file: &str,
    ) -> Result<Vec<Resource>, Error> {
        let in_file = |problem: Problem| Error::from(problem.in_file(file));
        let mut found = Accumulated::default();
        for entry in entries {
            if is_inline(entry) {
                let mut resources = Resource::read_all(entry).map_err(in_file)?;
                for resource in &mut resources {
                    resource.origin = place
                        .origin
                        .as_ref()
                        .map(|origin| origin.join(path::base(file)));
                }
                found.list.append_all(resources).map_err(in_file)?;
            } else {
                self.add_resources(&mut found, std::slice::from_ref(entry), loader, place, file)?;
            }
        }
        Ok(found.list.resources)
    }
}

/// Adds the fields that users configure.
fn add_config(
    config: &mut Config,
    kustomization: &Kustomization,
    loader: &Loader<'_>,
) -> Result<()> {
    for file in &kustomization.configurations {
        let in_file = |problem: Problem| problem.in_file(&loader.path(file));
        let read = Config::read(loader.yaml(file)?).map_err(in_file)?;
        config.merge(&read)?;
    }
    for file in &kustomization.crds {
        let in_file = |problem: Problem| problem.in_file(&loader.path(file));
        let read = config::from_definitions(&loader.yaml(file)?).map_err(in_file)?;
        config.merge(&read)?;
    }
    Ok(())
}

/// The origin of what a generator or transformer that is an object makes.
fn configured_by(plugin: &Resource) -> Option<Origin> {
    let origin = plugin.origin.as_ref()?;
    Some(Origin {
        path: String::new(),
        configured_in: origin.path.clone(),
        configured_by: Some(ConfiguredBy {
            gvk: plugin.gvk(),
            name: plugin.name().to_owned(),
            namespace: plugin.namespace().to_owned(),
        }),
    })
}
