#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks files of JSON against a JSON Schema, of which it knows what mpiperf's has; stricter than that: fields
that the schema does not name are faults. A keyword that it does not know is an error.

    ci/schema.py SCHEMA FILE...     exit status 1, with the place and the fault, at the first one
"""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}
SILENT = {"$schema", "$defs", "title", "description", "default", "format"}


def fault(value, schema, root, at=""):
    """What is wrong, or None."""
    if schema is True:
        return None
    for word, rule in schema.items():
        if word in SILENT or word in ("required", "items"):
            continue
        wrong = check(word, rule, value, schema, root, at)
        if wrong:
            return wrong
    return None


def check(word, rule, value, schema, root, at):
    if word == "$ref":
        return fault(value, root["$defs"][rule.rsplit("/", 1)[-1]], root, at)
    if word == "type":
        names = rule if isinstance(rule, list) else [rule]
        good = any(isinstance(value, TYPES[n]) and (n == "boolean" or not isinstance(value, bool)) for n in names)
        if not good:
            return f"{at}: {json.dumps(value)[:60]} is no {' or '.join(names)}"
        if isinstance(value, list):
            return of_list(value, schema, root, at)
        return None
    if word == "properties":
        if not isinstance(value, dict):
            return None
        for name in schema.get("required", []):
            if name not in value:
                return f"{at}: {name} is missing"
        for name, inner in value.items():
            if name not in rule:
                return f"{at}: {name} is not in the schema"
            wrong = fault(inner, rule[name], root, f"{at}/{name}")
            if wrong:
                return wrong
        return None
    if word in ("anyOf", "oneOf"):
        faults = [fault(value, one, root, at) for one in rule]
        right = faults.count(None)
        if right == 0 or (word == "oneOf" and right > 1):
            return f"{at}: {right} of the forms fit: {faults[-1]}"
        return None
    if word == "enum":
        return None if value in rule else f"{at}: {value!r} is none of {rule}"
    if word == "const":
        return None if value == rule else f"{at}: {value!r} is not {rule!r}"
    if word in ("minimum", "maximum"):
        low = word == "minimum"
        bad = isinstance(value, (int, float)) and (value < rule if low else value > rule)
        return f"{at}: {value} is beyond {rule}" if bad else None
    if word in ("minItems", "maxItems", "prefixItems", "additionalProperties"):
        return None
    raise SystemExit(f"schema.py does not know the keyword {word}")


def of_list(value, schema, root, at):
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        return f"{at}: {len(value)} items"
    first = schema.get("prefixItems", [])
    for i, inner in enumerate(value):
        rule = first[i] if i < len(first) else schema.get("items", True)
        wrong = fault(inner, rule, root, f"{at}/{i}")
        if wrong:
            return wrong
    return None


def main():
    with open(sys.argv[1]) as file:
        root = json.load(file)
    for path in sys.argv[2:]:
        with open(path) as file:
            wrong = fault(json.load(file), root, root)
        if wrong:
            sys.exit(f"{path}: {wrong}")


main()
