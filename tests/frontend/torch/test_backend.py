"""`torch.compile(backend="sardonyx")`."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_three import close  # noqa: E402

from sardonyx.frontend.torch.backend import sardonyx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_it_is_registered():
    assert "sardonyx" in torch._dynamo.list_backends()


def test_inference():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).eval()
    compiled = torch.compile(model, backend=sardonyx)
    with torch.no_grad():
        for batch in (3, 3, 5, 7):  # the third size makes the dim dynamic
            x = torch.rand(batch, 4)
            close(model(x), compiled(x))


def test_training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.LayerNorm(3))
    x = torch.rand(5, 4)
    model(x).square().sum().backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    torch.compile(model, backend=sardonyx)(x).square().sum().backward()
    for want, parameter in zip(wanted, model.parameters()):
        close(want, parameter.grad, rtol=1e-3, atol=1e-4)


def test_what_has_no_translation_is_an_error():
    def model(x):
        return torch.linalg.matrix_exp(x)

    with pytest.raises(Exception, match="linalg_matrix_exp.* has no translation"):
        torch.compile(model, backend=sardonyx)(torch.eye(3))
