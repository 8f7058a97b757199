# SPDX-License-Identifier: BSD-2-Clause
"""Facts about the source tree, read from its files without importing them: imports and names."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

#: What imports what: each name with the names that it imports.
Edges = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A source file under the dotted name that it is imported by."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        """The package whose folder the file lies in."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(), str(self.path))


class SourceTree:
    """The modules of packages, given as the dotted name and the folder of each."""

    def __init__(self, packages: Mapping[str, Path]):
        self.modules: dict[str, Module] = {}
        for package, folder in packages.items():
            for path in sorted(folder.rglob("*.py")):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join([package, *(part for part in parts if part != "__init__")])
                self.modules[name] = Module(name, path)

    def imports(self) -> Edges:
        """Return which of these modules each module imports, in functions and for type checkers alone too."""
        return {name: {target for target, _ in self._imported(module)} for name, module in self.modules.items()}

    def imports_of_units(self, roots: Iterable[str]) -> Edges:
        """Return the same of units: the packages and modules that lie directly in *roots*, with all that is in them."""

        def unit(name: str) -> str:
            for root in roots:
                if name.startswith(f"{root}."):
                    return f"{root}.{name[len(root) + 1 :].partition('.')[0]}"
            return name

        edges: dict[str, set[str]] = {}
        for name, targets in self.imports().items():
            edges.setdefault(unit(name), set()).update({unit(target) for target in targets} - {unit(name)})
        return edges

    def imports_within(self, root: str) -> Edges:
        """Return which of the units of *root* each of them imports, without the name of *root*."""
        units = {
            name: targets for name, targets in self.imports_of_units([root]).items() if name.startswith(f"{root}.")
        }
        return {
            name.removeprefix(f"{root}."): {target.removeprefix(f"{root}.") for target in targets & units.keys()}
            for name, targets in units.items()
        }

    def private_names_across_packages(self) -> list[str]:
        """Return where a module uses a name with a leading underscore of a module in another package."""
        found = []
        for module in self.modules.values():
            names = {}
            for node in _import_statements(module.tree):
                for target, alias in self._targets(module, node):
                    if isinstance(node, ast.Import) or target == f"{self._base(module, node)}.{alias.name}":
                        names[alias.asname or alias.name] = target
                    elif _private(alias.name) and self.modules[target].package != module.package:
                        found.append(f"{module.path.name}:{node.lineno}: {alias.name} of {target}")
            for use in ast.walk(module.tree):
                if isinstance(use, ast.Attribute) and _private(use.attr):
                    target = names.get(ast.unparse(use.value), "")
                    if target and self.modules[target].package != module.package:
                        found.append(f"{module.path.name}:{use.lineno}: {use.attr} of {target}")
        return found

    def _imported(self, module: Module) -> Iterator[tuple[str, ast.alias]]:
        for node in _import_statements(module.tree):
            yield from self._targets(module, node)

    def _targets(self, module: Module, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ast.alias]]:
        """Yield which modules an import statement imports: of ``from package import name`` the module *name* if there
        is one, otherwise *package*."""
        if isinstance(node, ast.Import):
            found = [(alias.name, alias) for alias in node.names]
        else:
            base = self._base(module, node)
            below = [(f"{base}.{alias.name}", alias) for alias in node.names]
            found = [(name if name in self.modules else base, alias) for name, alias in below]
        yield from ((name, alias) for name, alias in found if name in self.modules and name != module.name)

    @staticmethod
    def _base(module: Module, node: ast.ImportFrom) -> str:
        """Return the absolute name of what stands after ``from``."""
        if not node.level:
            return node.module or ""
        parts = module.package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def out_of_order(edges: Edges, floors: Sequence[str]) -> list[str]:
    """Return which of the imports *edges* do not lead to a lower floor, and which names are on none, on several, or on
    one and not there. *floors* are names separated by spaces, the lowest floor first."""
    names = [(name, number) for number, floor in enumerate(floors) for name in floor.split()]
    floor_of = dict(names)
    faults = [f"{name} is on no floor" for name in sorted(set(edges) - set(floor_of))]
    faults += [f"{name} is on a floor, but not there" for name in sorted(set(floor_of) - set(edges))]
    faults += [f"{name} is on {n} floors" for name, n in sorted(Counter(name for name, _ in names).items()) if n > 1]
    for name, targets in sorted(edges.items()):
        upward = sorted(t for t in targets if floor_of.get(t, -1) >= floor_of.get(name, len(floors)))
        faults += [f"{name} imports {target}, which is not below it" for target in upward]
    return faults


def circles(edges: Edges) -> list[list[str]]:
    """Return the strongly connected components of more than one name, each sorted."""
    reached = {name: _reachable(edges, name) for name in edges}
    groups = {frozenset(other for other in reached[name] if name in reached.get(other, ())) for name in edges}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reachable(edges: Edges, start: str) -> set[str]:
    found: set[str] = set()
    pending = list(edges.get(start, ()))
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += edges.get(name, ())
    return found


def _import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
