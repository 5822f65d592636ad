"""Module paths in the names that JAX gives operations."""

import pytest

from shardnb.report.op_names import module_path


@pytest.mark.parametrize(
    ("op_name", "path"),
    [
        ("", ""),
        ("add", ""),
        ("jit(f)/add", ""),
        ("jit(f)/jvp()/add", ""),
        ("jit(loss)/jvp(Net)/Dense_0/dot_general", "Net/Dense_0"),
        ("jit(loss)/transpose(jvp(Net))/Dense_0/dot_general", "Net/Dense_0"),
        ("jit(loss)/transpose(jvp(Net/Block_1))/Dense_0/dot_general", "Net/Block_1/Dense_0"),
        ("jit(step)/while/body/closed_call/layers/mlp/wi/dot_general", "layers/mlp/wi"),
        ("jit(step)/jit(main)/checkpoint/rematted_computation/block/add", "block"),
        ("jit(f)/cond/branch_1_fun/head/add", "head"),
        ("jit(f)/mlp/~/linear_0/dot_general", "mlp/linear_0"),
        ("jit(f)/vmap(jvp(Net))/jit(relu)/max", "Net"),
        ("jit(f)/jvp(Net)/(Dense_0/add:Dense_0/mul)", "Net/Dense_0"),
        ("jit(f)/jvp(Net)/(Dense_0/add:Dense_1/mul)", "Net"),
        ("jit(f)/Net/a/add;jit(f)/Net/b/mul", "Net"),
        ("jit(f)/Net/a/add;jit(f)/mul", ""),
    ],
)
def test_modules_are_what_is_neither_a_function_nor_a_transform_nor_control_flow(op_name, path):
    assert module_path(op_name) == path
