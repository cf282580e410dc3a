"""The prefixes that a query may use without saying them: those of the standards and those of the ontology."""

import re
from collections import Counter

from sameas.extraction.outputs.rdf import PREFIXES
from sameas.ontology.model import Ontology

_NAMESPACE = re.compile(r"(.*[/#:])[^/#:]+\Z")
_PLAIN = re.compile(r"[a-z][a-z0-9-]*\Z")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


def prefixes_of(ontology: Ontology, *, base: str) -> dict[str, str]:
    """Prefix and IRI of each. The ontology's main namespace is `:` and its own last word, the collection's `this:`."""
    found = {**PREFIXES, "this": base}
    namespaces: Counter[str] = Counter()
    iris = [one.iri for one in ontology.classes] + [one.iri for one in ontology.properties]
    for iri in (*iris, *(one.iri for one in ontology.individuals)):
        match = _NAMESPACE.match(iri)
        if match and match[1] not in found.values():
            namespaces[match[1]] += 1
    for number, (namespace, _) in enumerate(sorted(namespaces.items(), key=lambda one: (-one[1], one[0]))):
        if number == 0:
            found[""] = namespace
        name = _name_of(namespace)
        if name and name not in found:
            found[name] = namespace
    return found


def _name_of(namespace: str) -> str:
    """The last word of a namespace that can be a prefix: `company` of `https://example.org/company#`."""
    for part in reversed(re.split(r"[/#:]", namespace.lower())):
        name = _NOT_PLAIN.sub("-", part).strip("-")
        if _PLAIN.match(name) and not name.isdigit():
            return name
    return ""


def shortened(iri: str, prefixes: dict[str, str]) -> str:
    """The IRI by its longest prefix, where what is left is a plain name."""
    best = ""
    for name, namespace in sorted(prefixes.items()):
        rest = iri.removeprefix(namespace)
        if rest != iri and re.fullmatch(r"[A-Za-z_][\w-]*", rest) and (not best or len(f"{name}:{rest}") < len(best)):
            best = f"{name}:{rest}"
    return best or f"<{iri}>"
