"""Control flow on data, state, and operators of the user's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_three import check, close  # noqa: E402

import sardonyx as sx  # noqa: E402


def test_cond():
    class Branch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda y: self.layer(y), lambda y: y - 1, (x,))

    made = check(
        Branch().eval(),
        (torch.ones(2, 3),),
        others=[((-torch.ones(4, 3),), {}), ((torch.rand(5, 3),), {})],
        dynamic_shapes=({0: "batch"},),
    )
    assert "If" in {n.op_type for n in made.model_proto.graph.node}


def test_nested_cond_with_values_from_outside():
    def model(x, y):
        def inner(a):
            return torch.cond(a.mean() > 0.5, lambda b: b * y, lambda b: b + y, (a,))

        return torch.cond(x.sum() > 0, inner, lambda a: a - y, (x,))

    inputs = [(torch.full((3,), v), torch.rand(3)) for v in (1.0, 0.1, -1.0)]
    check(model, inputs[0], others=[(i, {}) for i in inputs[1:]])


def test_while_loop():
    from torch._higher_order_ops import while_loop

    class Doubling(torch.nn.Module):
        def forward(self, x, limit):
            def going(i, y):
                return (y.sum() < limit) & (i < 20)

            def step(i, y):
                return i + 1, y * 2

            return while_loop(going, step, (torch.tensor(0), x))

    made = check(
        Doubling(),
        (torch.ones(3), torch.tensor(50.0)),
        others=[((torch.ones(3), torch.tensor(0.0)), {}), ((torch.zeros(3), torch.tensor(1.0)), {})],
    )
    assert "Loop" in {n.op_type for n in made.model_proto.graph.node}


def test_scan():
    from torch._higher_order_ops.scan import scan

    class Running(torch.nn.Module):
        def forward(self, x, start):
            def step(state, row):
                after = state * 0.5 + row
                return after, after * 2

            return scan(step, start, x, dim=0)

    made = check(Running(), (torch.rand(5, 3), torch.zeros(3)))
    assert "Scan" in {n.op_type for n in made.model_proto.graph.node}


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.total += x
        self.calls.add_(1)
        return self.total * 2


def test_written_buffers_are_state():
    model = Counter()
    made = sx.export(model, (torch.ones(3),))
    assert made.graph.output_names() == ["output_0", "state_out_0", "state_out_1"]
    for run in (1, 2, 3):
        found = made(torch.ones(3))
        close(torch.full((3,), 2.0 * run), found[0])
    assert int(made.graph.states()["calls"].numpy()) == 3
    assert model.calls.item() == 0 and torch.equal(model.total, torch.zeros(3))
    with pytest.raises(sx.UnsupportedError, match="that is state, which ONNX cannot state") as found:
        made.model_proto  # noqa: B018
    assert isinstance(found.value, sx.OnnxExporterError)


def test_state_that_would_be_lost_is_refused(tmp_path):
    with pytest.raises(sx.UnsupportedError, match="that is state, which ONNX cannot state"):
        sx.export(Counter(), (torch.ones(3),), tmp_path / "counter.onnx")
    assert not list(tmp_path.iterdir())


def test_batch_norm_in_training_is_state():
    torch.manual_seed(0)
    model, twin = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    made = sx.export(model, (torch.rand(4, 3),))
    for _ in range(2):
        x = torch.rand(4, 3)
        close(twin(x).detach(), made(x)[0])
    close(twin.running_var, made.graph.states()["running_var"].numpy())


# ---- operators of the user's


@pytest.fixture(scope="module")
def cube():
    @torch.library.custom_op("sardonyx_test::cube", mutates_args=(), schema="(Tensor x, float factor) -> Tensor")
    def cube(x, factor):
        return x**3 * factor

    @cube.register_fake
    def _(x, factor):
        return torch.empty_like(x)

    class Cube(torch.nn.Module):
        def forward(self, x):
            return torch.ops.sardonyx_test.cube(x, 2.0) + 1

    return Cube()


def test_a_translation_over_our_functions(cube):
    target = torch.ops.sardonyx_test.cube.default
    with pytest.raises(sx.UnsupportedError, match="sardonyx_test.cube.default has no translation"):
        sx.export(cube, (torch.rand(3),))
    check(cube, (torch.rand(3),), custom_translation_table={target: lambda x, factor: x * x * x * factor})
    check(
        cube,
        (torch.rand(3),),
        custom_translation_table={target: [lambda x: x, lambda x, factor: sx.pow(x, 3) * factor]},
    )


def test_a_translation_in_onnxscript(cube):
    onnxscript = pytest.importorskip("onnxscript")
    op = onnxscript.opset18

    @onnxscript.script(default_opset=op)
    def cube_of(x, factor: float):
        squared = op.Mul(x, x)
        return op.Mul(op.Mul(squared, x), op.CastLike(op.Constant(value_float=factor), x))

    check(cube, (torch.rand(3),), custom_translation_table={torch.ops.sardonyx_test.cube.default: cube_of})


def test_symbolic_functions_are_deprecated(cube):
    def symbolic(g, x, factor):
        return g.op("my.domain::Cube", x, factor_f=factor)

    with pytest.warns(DeprecationWarning, match="custom_translation_table"):
        sx.register_custom_op_symbolic("sardonyx_test::cube", symbolic, 18)
    try:
        made = sx.export(cube, (torch.rand(3),))
        node = made.model_proto.graph.node[0]
        assert (node.domain, node.op_type, node.attribute[0].f) == ("my.domain", "Cube", 2.0)
    finally:
        with pytest.warns(DeprecationWarning):
            sx.unregister_custom_op_symbolic("sardonyx_test::cube", 18)
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(sx.InvalidArgumentError, match="no symbolic function is registered"),
    ):
        sx.unregister_custom_op_symbolic("sardonyx_test::cube", 18)


def test_the_mode_of_a_model_is_restored():
    model = torch.nn.Dropout()
    with pytest.warns(DeprecationWarning), sx.select_model_mode_for_export(model, sx.TrainingMode.EVAL):
        assert not model.training
    assert model.training


def test_rotary_embeddings_in_complex_numbers():
    def rotary(x, start):
        turns = torch.outer(torch.arange(4.0) + start, torch.tensor([1.0, 0.5]))
        pairs = torch.view_as_complex(x.reshape(2, 4, 2, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones(4, 2), turns).unsqueeze(0)).flatten(2)

    check(rotary, (torch.rand(2, 4, 4), torch.tensor(3.0)))
    with pytest.raises(sx.UnsupportedError, match="of complex numbers has no form here"):
        sx.export(lambda x: torch.view_as_real(torch.fft.rfft(x).transpose(0, 1)), (torch.rand(2, 4),))
