"""What can be wrong with an ontology, for people: what, where, and what to do.

OntologyError
    OntologyNotFoundError       the file is not there or is not a file
    OntologyFormatError         the notation is unknown or one that is not read
    OntologySyntaxError         the text breaks the rules of its notation
    OntologyRefusedError        the text is legal and unsafe: external entities, remote contexts
    OntologyTooLargeError       a size, count or time limit is passed
    OntologyExpressionError     a class expression or list that cannot be followed
    OntologyExtraError          an optional package is missing
"""

from sameas.identity.errors import SameasError, one_stop


class OntologyError(SameasError):
    """The ontology cannot be used."""

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        todo: str = "",
    ) -> None:
        self.what = what
        self.file = file
        self.line = line
        self.column = column
        self.todo = todo
        super().__init__(self._message())

    def _message(self) -> str:
        place = self.file or "ontology"
        if self.line is not None:
            place += f", line {self.line}"
            if self.column is not None:
                place += f", column {self.column}"
        return f"{place}: {self.said}"

    @property
    def said(self) -> str:
        """What is wrong and what to do, without where."""
        return one_stop(f"{self.what}. {self.todo}") if self.todo else self.what

    def located(self, file: str | None) -> "OntologyError":
        """The same error, naming the file if it did not yet."""
        if self.file is not None or file is None:
            return self
        return type(self)(self.what, file=file, line=self.line, column=self.column, todo=self.todo)


class OntologyNotFoundError(OntologyError):
    """The file is not there or is not a file."""


class OntologyFormatError(OntologyError):
    """The notation is unknown or one that is not read."""


class OntologySyntaxError(OntologyError):
    """The text breaks the rules of its notation."""


class OntologyRefusedError(OntologyError):
    """The text is legal and unsafe."""


class OntologyTooLargeError(OntologyError):
    """A size, count or time limit is passed."""


class OntologyExpressionError(OntologyError):
    """A class expression or list cannot be followed."""


class OntologyExtraError(OntologyError):
    """An optional package is missing."""
