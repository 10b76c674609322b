"""Pipelines as JSON documents, both ways."""

from dfmesh.api.document_reader import read_document
from dfmesh.api.document_writer import write_document

__all__ = ["read_document", "write_document"]
