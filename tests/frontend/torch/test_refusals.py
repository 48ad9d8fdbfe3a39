"""What is refused, with which class and code, naming the user's line and module; what is accepted with a warning."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import sardonyx as sx  # noqa: E402


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


X = torch.ones(2, 3)


def refused(match, *args, kind: type[sx.SardonyxError] = sx.InvalidArgumentError, **options):
    with pytest.raises(kind, match=match) as found:
        sx.export(*args, **options)
    assert isinstance(found.value, sx.OnnxExporterError) and isinstance(found.value, sx.SardonyxError)
    return found.value


@pytest.mark.parametrize(
    ("match", "options"),
    [
        ("opset 12 is too old", {"opset_version": 12}),
        ("opset_version is an int", {"opset_version": "18"}),
        ("input_names is a list", {"input_names": "x"}),
        ("input_names has a name twice", {"input_names": ["x", "x"]}),
        ("input_names has 2 names, but the model takes 1", {"input_names": ["x", "y"]}),
        ("output_names has 2 names, but the model returns 1", {"output_names": ["x", "y"]}),
        ("dynamic_axes names 'z', which is neither", {"dynamic_axes": {"z": [0]}, "input_names": ["x"]}),
        ("has axis 5, but the input has rank 2", {"dynamic_axes": {"x": {5: "n"}}, "input_names": ["x"]}),
        ("has an axis without a name", {"dynamic_axes": {"x": {0: ""}}, "input_names": ["x"]}),
        ("is a dict {axis: name} or a list", {"dynamic_axes": {"x": "batch"}, "input_names": ["x"]}),
        ("optimize is a bool", {"optimize": "yes"}),
        ("a path is a str", {"f": 3}),
        ("do not fit the model", {"dynamic_shapes": {"y": {0: "batch"}}}),
        ("without an overload", {"custom_translation_table": {torch.ops.aten.mul: lambda a, b: a}}),
        ("is an operator such as", {"custom_translation_table": {"aten::mul": lambda a, b: a}}),
    ],
)  # fmt: skip
def test_wrong_arguments(match, options):
    assert refused(match, Double(), (X,), **options).code_name == "INVALID_ARGUMENT"


def test_wrong_inputs():
    assert "tuple" in str(refused("do not fit the model", Double(), (X, X)).hint)
    error = refused("fails on the example inputs", Double(), (None,))
    assert error.location is not None and "test_refusals.py" in error.location


def test_wrong_models():
    assert refused("takes a torch.nn.Module", 3, ()).code_name == "INVALID_ARGUMENT"
    with pytest.warns():
        script = torch.jit.script(Double())
    refused("is a ScriptModule", script, (X,), kind=sx.UnsupportedError)
    program = torch.export.export(Double(), (X,))
    refused("of an ExportedProgram are fixed", program, (X,), dynamic_shapes=({0: "n"},))


def test_a_dim_that_the_model_fixes():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x + torch.ones(2, 1)

    error = refused(
        "dynamic shapes do not fit|is dynamic, but the model fixes it", Fixed(), (X,), dynamic_shapes=({0: "n"},)
    )
    assert "static" in str(error.hint)


def test_an_operator_without_a_translation():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(Inverse())

        def forward(self, x):
            return self.inner(x)

    class Inverse(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.matrix_exp(x)  # here

    error = refused("has no translation", Outer(), (torch.eye(3),), kind=sx.UnsupportedError)
    assert error.code_name == "NOT_IMPLEMENTED"
    with open(__file__, encoding="utf-8") as file:
        line = next(i for i, text in enumerate(file, start=1) if "# here" in text)
    assert f"test_refusals.py:{line} (module 'inner.0')" in str(error)
    assert "custom_translation_table" in str(error.hint)


@pytest.mark.parametrize(
    ("match", "function", "inputs"),
    [
        ("complex", lambda x: x * torch.complex(x, x), (torch.ones(2),)),
        ("depends on the data", lambda x: torch.bincount(x), (torch.tensor([1, 2]),)),
        ("decides in Python on the contents", lambda x: x * 2 if x.sum() > 0 else x, (torch.ones(2),)),
        ("in place", lambda x: x.add_(1), (torch.ones(2),)),
        ("draws at random", lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
         (torch.ones(1, 2, 2),)),
    ],
)  # fmt: skip
def test_what_has_no_form(match, function, inputs):
    refused(match, function, inputs, kind=sx.SardonyxError)


@pytest.mark.parametrize(
    ("match", "options"),
    [
        ("dynamo=False takes the same path", {"dynamo": False}),
        ("training is deprecated", {"training": sx.TrainingMode.TRAINING}),
        ("operator_export_type is deprecated", {"operator_export_type": sx.OperatorExportTypes.ONNX_ATEN}),
        ("do_constant_folding is deprecated", {"do_constant_folding": False}),
        ("custom_opsets is deprecated", {"custom_opsets": {"my.domain": 2}}),
        ("export_modules_as_functions is deprecated", {"export_modules_as_functions": True}),
        ("autograd_inlining is deprecated", {"autograd_inlining": False}),
    ],
)
def test_deprecated_options(match, options):
    with pytest.warns(DeprecationWarning, match=match):
        program = sx.export(Double(), (X,), **options)
    assert torch.equal(program(X)[0], X * 2)


def test_the_signature_is_the_documents():
    import inspect

    parameters = inspect.signature(sx.export).parameters
    assert (
        list(parameters)
        == (
            "model args f kwargs verbose input_names output_names opset_version dynamo external_data dynamic_shapes "
            "custom_translation_table report optimize verify profile dump_exported_program artifacts_dir fallback "
            "export_params keep_initializers_as_inputs dynamic_axes training operator_export_type do_constant_folding "
            "custom_opsets export_modules_as_functions autograd_inlining"
        ).split()
    )
    assert [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == ["model", "args", "f"]
