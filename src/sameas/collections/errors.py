"""What a collection refuses.

CollectionError CollectionNotFoundError CollectionExistsError EntityNotFoundError EntityAmbiguousError
DecisionNotFoundError DocumentNotFoundError RoleRequiredError
"""

from sameas.identity.errors import SameasError


class CollectionError(SameasError):
    """A collection cannot do what was asked."""


class CollectionNotFoundError(CollectionError):
    """There is no such collection, or none that the caller may read."""


class CollectionExistsError(CollectionError):
    """There is a collection of this name already."""


class EntityNotFoundError(CollectionError):
    """Nothing in the collection has this id or name."""


class EntityAmbiguousError(CollectionError):
    """Several things have this name."""


class DecisionNotFoundError(CollectionError):
    """There is no such decision in force."""


class DocumentNotFoundError(CollectionError):
    """There is no such document."""


class RoleRequiredError(CollectionError):
    """The caller's role in the collection does not allow it."""
