"""Expressions of kernels: text to trees and back, the canonical form, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from slayr_py.errors import DataError
from slayr_py.kernels.expressions import LEAVES, Leaf, Product, Sum, add, canonical, leaves, multiply, parse, spell
from slayr_py.kernels.expressions.parser import MOST_NESTING

SE, RQ, PER, LIN, C = (Leaf(name) for name in ("SE", "RQ", "PER", "LIN", "C"))

GIVEN = ("PRE", "older_task")
COLUMNS = [
    "x1",
    "act",
    "a b",
    " led",
    "a, b",
    "[0]",
    "f(x)",
    'the "best"',
    "back\\slash",
    "",
    "it's",
    "ß",
    "a\nb",
    "*+",
]


def random_tree(rng, depth=4):
    if depth == 0 or rng.random() < 0.3:
        name = str(rng.choice([*LEAVES, *GIVEN]))
        takes_columns = name != "C" and name not in GIVEN and rng.random() < 0.5
        columns = rng.choice(COLUMNS, size=rng.integers(1, 4), replace=False)
        return Leaf(name, tuple(map(str, columns)) if takes_columns else None)
    join = add if rng.random() < 0.5 else multiply
    tree = random_tree(rng, depth - 1)
    for _ in range(rng.integers(1, 4)):
        tree = join(tree, random_tree(rng, depth - 1))
    return tree


TREES = [random_tree(np.random.default_rng(seed), depth=seed % 5) for seed in range(300)]


def key_of(leaf):
    return leaf.name, leaf.columns and tuple(sorted(leaf.columns))


def value(node, numbers):
    """Evaluate with a number for each leaf, whatever the order of its columns."""
    if isinstance(node, Sum):
        return sum(value(term, numbers) for term in node.terms)
    if isinstance(node, Product):
        return np.prod([value(factor, numbers) for factor in node.factors])
    return numbers[key_of(node)]


def is_flat(node):
    if isinstance(node, Sum):
        return len(node.terms) > 1 and all(not isinstance(t, Sum) and is_flat(t) for t in node.terms)
    if isinstance(node, Product):
        return len(node.factors) > 1 and all(not isinstance(f, Product) and is_flat(f) for f in node.factors)
    return True


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("SE", SE),
        (" \tSE\n", SE),
        ("LIN * PER + SE[x1,act]", Sum((Product((LIN, PER)), Leaf("SE", ("x1", "act"))))),
        ("LIN*(PER+SE)", Product((LIN, Sum((PER, SE))))),
        ("SE + (LIN + (RQ))", Sum((SE, LIN, RQ))),
        ("(SE * LIN) * RQ", Product((SE, LIN, RQ))),
        ("C", C),
        ("PRE + older_task", Sum((Leaf("PRE"), Leaf("older_task")))),
        ("MAT12 [ x1 , x 2 ]", Leaf("MAT12", ("x1", "x 2"))),
        ('SE["a, b", "q\\"\\\\", " c "]', Leaf("SE", ("a, b", 'q"\\', " c "))),
        ("LIN[back\\slash]", Leaf("LIN", ("back\\slash",))),
        ('LIN[""]', Leaf("LIN", ("",))),
    ],
)
def test_parse(text, tree):
    assert parse(text, GIVEN) == tree


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("LIN*PER+SE[x1 , act]", "LIN * PER + SE[x1,act]"),
        ("((SE)+((LIN)))*RQ", "(SE + LIN) * RQ"),
        ("(SE*LIN)+RQ*(C)", "SE * LIN + RQ * C"),
        ('RQ["a, b",  "plain"]', 'RQ["a, b",plain]'),
    ],
)
def test_spelling_has_one_style_and_needed_brackets_only(text, wanted):
    assert spell(parse(text)) == wanted


def test_spelling_is_inverted_by_parsing():
    assert len(set(map(spell, TREES))) > 200
    for tree in TREES:
        assert parse(spell(tree), GIVEN) == tree


def test_long_sums_and_deep_brackets_are_read():
    assert len(leaves(parse("+".join(["SE"] * 5000)))) == 5000
    deep = "".join("(SE + LIN * " for _ in range(MOST_NESTING)) + "RQ" + ")" * MOST_NESTING
    tree = parse(deep)
    assert parse(spell(tree)) == tree and len(leaves(canonical(tree))) == 2 * MOST_NESTING + 1


def test_leaves_are_in_reading_order():
    assert leaves(parse("LIN * (SE + RQ[x]) + C")) == (LIN, SE, Leaf("RQ", ("x",)), C)


def test_add_and_multiply_flatten():
    assert add(add(SE, RQ), add(LIN, PER)) == Sum((SE, RQ, LIN, PER))
    assert multiply(multiply(SE, RQ), multiply(LIN, PER)) == Product((SE, RQ, LIN, PER))
    assert multiply(add(SE, RQ), LIN) == Product((Sum((SE, RQ)), LIN))
    assert add(SE, multiply(LIN, PER)) == Sum((SE, Product((LIN, PER))))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SE + RQ + LIN", "LIN + RQ + SE"),
        ("PER * LIN", "LIN * PER"),
        ("SE * C", "SE"),
        ("C * C", "C"),
        ("C * C + C", "C"),
        ("SE + C + RQ + C", "C + RQ + SE"),
        ("(C + C) * SE", "SE"),
        ("C * (SE + LIN) + RQ", "LIN + RQ + SE"),
        ("C * (SE * (C + C))", "SE"),
        ("SE * LIN * SE", "LIN * SE"),
        ("SE * (C * SE)", "SE"),
        ("SE[a,b] * SE[b,a]", "SE[a,b]"),
        ("SE[a] * SE[b] * SE[a] * SE", "SE * SE[a] * SE[b]"),
        ("SE + SE", "SE + SE"),
        ("RQ * RQ + PER * PER + LIN * LIN + PRE * PRE", "LIN * LIN + PER * PER + PRE * PRE + RQ * RQ"),
        ("(SE + LIN) * (SE + LIN)", "(LIN + SE) * (LIN + SE)"),
        ("RQ[z,a]", "RQ[a,z]"),
    ],
)
def test_canonical(text, wanted):
    assert spell(canonical(parse(text, GIVEN))) == wanted


def test_canonical_form_is_flat_for_trees_that_are_not():
    tree = Sum((Sum((SE, Product((C, Sum((LIN, RQ)))))), Product((Product((PER, SE)), SE))))
    assert canonical(tree) == parse("LIN + PER * SE + RQ + SE")


def test_canonical_form_is_its_own_and_ignores_order():
    rng = np.random.default_rng(7)

    def shuffled(node):
        if isinstance(node, Leaf):
            return Leaf(node.name, node.columns and tuple(map(str, rng.permutation(node.columns))))
        parts = [shuffled(part) for part in (node.terms if isinstance(node, Sum) else node.factors)]
        return type(node)(tuple(parts[place] for place in rng.permutation(len(parts))))

    for tree in TREES:
        form = canonical(tree)
        assert canonical(form) == form and is_flat(form)
        assert parse(spell(form), GIVEN) == form
        assert canonical(shuffled(tree)) == form


def test_canonical_forms_have_the_same_value():
    # Merging changes what belongs to a leaf: squared-exponential factors keep the value 1, sums of constants none.
    rng = np.random.default_rng(4)
    for tree in TREES:
        if C not in leaves(tree):
            numbers = {key: 1.0 if key[0] == "SE" else rng.random() for key in map(key_of, leaves(tree))}
            np.testing.assert_allclose(value(canonical(tree), numbers), value(tree, numbers), rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("LIN + se", 7, "unknown kernel 'se'; did you mean 'SE'?"),
        ("LINN * SE", 1, "unknown kernel 'LINN'; did you mean 'LIN'?"),
        ("old_task + SE", 1, "unknown kernel 'old_task'; did you mean 'older_task'?"),
        ("wiggle", 1, "unknown kernel 'wiggle'; known: SE, RQ, PER, LIN, MAT12, MAT32, MAT52, C, PRE, older_task"),
        ("SE - LIN", 4, "unknown character '-'; use names of kernels, '+', '*'"),
        ("2 * SE", 1, "unknown character '2'"),
        ("SE × LIN", 4, "unknown character '×'"),
        ("SE + ", 6, "a kernel is missing at the end; write one, or remove the operator or bracket"),
        ("* SE", 1, "a kernel is missing before '*'"),
        ("SE ** LIN", 5, "a kernel is missing before '*'"),
        ("SE * ()", 7, "a kernel is missing before ')'"),
        ("[x1]", 1, "a kernel is missing before '['"),
        ("(", 2, "a kernel is missing at the end"),
        ("SE LIN", 4, "an operator is missing; write '+' or '*'"),
        ("SE(x1)", 3, "an operator is missing; write '+' or '*'; columns are in square brackets, as in SE[x1]"),
        ("LIN * (SE + (RQ)", 7, "unclosed '('; add the missing ')'"),
        ("(SE LIN", 5, "an operator is missing"),
        ("(SE + LIN) * RQ) + SE", 16, "surplus ')'; remove it, or open the bracket before"),
        ("SE]", 3, "surplus ']'"),
        ("(SE + LIN)[x1]", 11, "columns that follow no kernel; write them after the name of each, such as SE[x1]"),
        ("SE[x1][x2]", 7, "columns that follow no kernel"),
        ("SE[x1", 3, "unclosed '['; add the missing ']'"),
        ("SE[", 3, "unclosed '['"),
        ("SE[x1,", 3, "unclosed '['"),
        ("SE[x1) + LIN", 6, "unexpected ')' in columns; write ',' or ']', or put the whole name in double quotes"),
        ("SE[(x1]", 4, "unexpected '(' in columns; put the whole name in double quotes, or close the '['"),
        ("LIN + SE[ ]", 9, "empty list of columns; name parameters, or remove the brackets to use all"),
        ("SE[,x1]", 4, "the name of a parameter is missing before ','; write one, or remove the ','"),
        ("SE[x1, ]", 8, "the name of a parameter is missing before ']'"),
        ('SE[x1, "x1"]', 8, "repeated column 'x1'; name each parameter once"),
        ('SE["x1]', 4, "unclosed quotes; end the name with '\"'"),
        ('SE["a\\n"]', 4, "unclosed quotes"),
        ('SE["a" b]', 8, "unexpected 'b' in columns"),
        ("LIN + C[x1]", 8, "C cannot have columns; remove them"),
        ("PRE[x1]", 4, "PRE cannot have columns"),
        ("(" * 101 + "SE" + ")" * 101, 101, "more than 100 nested brackets; remove brackets that change nothing"),
        ("(" * 100000, 101, "more than 100 nested brackets"),
        ("SE\n+\t\x1b", 6, "unknown character '\\x1b'"),
        ("+".join(["SE"] * 100) + " RQ", 301, "an operator is missing"),
    ],
)
def test_errors_show_the_place(text, place, message):
    with pytest.raises(DataError) as caught:
        parse(text, GIVEN)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"character {place} of the expression: {message}")
    printable = "".join(char if char.isprintable() else " " for char in text)
    assert shown.strip(" .").removesuffix("...") in printable
    assert caret.strip() == "^" and len(shown) < 150
    if len(text) < 80:
        assert shown == "    " + printable and len(caret) == 4 + place
    elif place <= len(text):
        assert shown[len(caret) - 1] == text[place - 1]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_an_error(text):
    with pytest.raises(DataError, match="character 1 of the expression: it is empty; write kernels, such as"):
        parse(text)


@pytest.mark.parametrize("text", [None, 3, b"SE", SE])
def test_only_text_is_parsed(text):
    with pytest.raises(DataError, match="the expression is .*; use a string such as 'LIN . PER . SE'"):
        parse(text)


@pytest.mark.parametrize("name", ["SE", "C", "", "a b", "1st", "x-y", 3])
def test_names_of_given_kernels_are_words_that_are_not_taken(name):
    with pytest.raises(DataError, match="a given kernel must have a name of letters.* got "):
        parse("SE", ["PRE", name])
