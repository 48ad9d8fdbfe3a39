"""Names and dynamic dims of exported models, as the document of torch.onnx has them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_three import check, ort_session  # noqa: E402

import sardonyx as sx  # noqa: E402

Dim = torch.export.Dim


class Sum(torch.nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


class Two(torch.nn.Module):
    def forward(self, x, scale=2.0, *, shift=None):
        y = x * scale
        return {"low": y if shift is None else y + shift, "rows": x.shape[0] * 2 + torch.zeros(1, dtype=torch.int64)}


def dims(values):
    """Names or numbers of the dims of a model's inputs or outputs."""
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


def test_the_documents_axes():
    static = sx.export(Sum(), (torch.ones(2, 2),), input_names=["x"], output_names=["sum"])
    assert dims(static.model_proto.graph.input) == {"x": [2, 2]}
    assert dims(static.model_proto.graph.output) == {"sum": [2]}
    named = sx.export(
        Sum(),
        (torch.ones(2, 2),),
        input_names=["x"],
        output_names=["sum"],
        dynamic_axes={"x": {0: "my_custom_axis_name"}, "sum": [0]},
    )
    assert dims(named.model_proto.graph.input) == {"x": ["my_custom_axis_name", 2]}
    assert dims(named.model_proto.graph.output) == {"sum": ["sum_dynamic_axes_1"]}


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: Dim("batch"), 1: Dim("width")}},
        {"x": ("batch", "width")},
    ],
)
def test_names_of_dynamic_dims(shapes):
    program = check(Sum(), (torch.rand(3, 4),), others=[((torch.rand(5, 2),), {})], dynamic_shapes=shapes)
    assert dims(program.model_proto.graph.input) == {"x": ["batch", "width"]}
    assert dims(program.model_proto.graph.output) == {"output_0": ["batch"]}


def test_derived_dims_stay_derived():
    batch = Dim("batch")

    class Halves(torch.nn.Module):
        def forward(self, x, y):
            return x + y[::2]

    program = check(
        Halves(),
        (torch.rand(3, 2), torch.rand(6, 2)),
        others=[((torch.rand(5, 2), torch.rand(10, 2)), {})],
        dynamic_shapes=({0: batch}, {0: 2 * batch}),
    )
    assert dims(program.model_proto.graph.input) == {"x": ["batch", 2], "y": ["2*batch", 2]}


def test_dims_in_expressions():
    class Reshaped(torch.nn.Module):
        def forward(self, x):
            batch, length, width = x.shape
            y = x.reshape(batch * length, width)
            half = y[: batch * length // 2]
            return (
                y.view(batch, -1),
                half,
                torch.arange(length * 2),
                torch.full((batch, 1), float(length)),
                x.new_ones(length),
            )

    program = check(
        Reshaped(),
        (torch.rand(2, 3, 4),),
        others=[((torch.rand(5, 6, 4),), {}), ((torch.rand(3, 3, 4),), {})],
        dynamic_shapes=({0: "batch", 1: "seq"},),
    )
    outputs = dims(program.model_proto.graph.output)
    assert outputs["output_0"] == ["batch", "4*seq"] and outputs["output_2"] == ["2*seq"]


def test_names_by_place_and_keyword():
    program = check(Two(), (torch.rand(2, 3),), {"shift": torch.rand(3)})
    assert program.graph.input_names() == ["x", "shift"]
    assert program.graph.output_names() == ["low", "rows"]
    renamed = sx.export(
        Two(), (torch.rand(2, 3), 3.0), kwargs={"shift": torch.rand(3)}, input_names=["a"], output_names=["b"]
    )
    assert renamed.graph.input_names() == ["a", "shift"] and renamed.graph.output_names() == ["b", "rows"]


def test_nested_inputs_and_outputs_that_are_inputs():
    class Nested(torch.nn.Module):
        def forward(self, pair, table):
            return pair[0] + table["k"], (pair[1], table["k"])

    given = ([torch.rand(2), torch.rand(3)], {"k": torch.rand(2)})
    program = check(Nested(), given)
    assert program.graph.input_names() == ["pair_0", "pair_1", "table_k"]
    assert len(ort_session(program).get_outputs()) == 3


def test_what_is_no_tensor_is_baked_in():
    class Baked(torch.nn.Module):
        def forward(self, x, times, flag):
            return x * times if flag else x

    program = sx.export(Baked(), (torch.ones(2), 3, True))
    assert program.graph.input_names() == ["x"]
    assert program(torch.ones(2), 3, True)[0].tolist() == [3, 3] and program(torch.ones(2))[0].tolist() == [3, 3]


def test_lengths_of_recurrent_layers_stay_dynamic():
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(8, 5)
            self.rnn = torch.nn.RNN(5, 2, nonlinearity="relu", bias=False)

        def forward(self, x):
            y, (h, c) = self.lstm(x)
            z, last = self.gru(y.transpose(0, 1))
            return self.rnn(z)[0], h, c, last

    torch.manual_seed(0)
    program = check(
        Tagger(),
        (torch.rand(2, 6, 3),),
        others=[((torch.rand(4, 5, 3),), {})],
        dynamic_shapes=({0: "batch", 1: "seq"},),
    )
    kinds = [n.op_type for n in program.model_proto.graph.node]
    assert (kinds.count("LSTM"), kinds.count("GRU"), kinds.count("RNN")) == (2, 1, 1)


def test_sizes_as_inputs():
    class Cut(torch.nn.Module):
        def forward(self, x, count: int):
            return x[:count] * count

    program = sx.export(Cut(), (torch.rand(7, 2), 3), dynamic_shapes=({0: "rows"}, Dim.DYNAMIC))
    x = torch.rand(9, 2)
    assert torch.equal(program.call_reference(x, 4)[0], x[:4] * 4)
    assert torch.equal(program(x, 5)[0], x[:5] * 5)
