# SPDX-License-Identifier: BSD-3-Clause
"""The summary's schema as tests use it: read and checked once; that takes longer than a summary."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from switchbench.records.summary_form import summary_schema


@cache
def _validator() -> Draft202012Validator:
    """Of the summary, by a schema that is one."""
    form = summary_schema()
    Draft202012Validator.check_schema(form)
    return Draft202012Validator(form)


def validate_summary(summary: Any) -> None:
    """Raises what is wrong with it most."""
    fault = best_match(_validator().iter_errors(summary))
    if fault is not None:
        raise fault
