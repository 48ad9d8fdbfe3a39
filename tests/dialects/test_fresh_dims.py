"""Symbols that nobody named stay apart, also from those of a text that another process wrote."""

from __future__ import annotations

from ir_text import parse_module

from sardonyx.dialects.attributes import dims_of, fresh_dim
from sardonyx.dialects.module import main_function


def test_a_fresh_symbol_is_none_of_a_text():
    number = int(str(fresh_dim()).strip('"?'))
    later = [f'"?{number + i}"' for i in (1, 2, 50)]
    module = parse_module(f"""func.func @main(%x: tensor<?x?x?xf32, #sx.dims<{", ".join(later)}>>) {{
      func.return
    }}""")
    used = set(dims_of(main_function(module).body.block.args[0]))
    assert len(used) == 3
    assert not used & {fresh_dim() for _ in range(100)}
