"""Where shards end, row by row: the rule of FORMAT.md without any cleverness."""


def cuts(lengths: list[int], qid: list[int] | None, shard_nnz: int) -> list[int]:
    """Rows of each shard, for rows of `lengths` entries."""
    groups: list[list[int]] = []
    for row, length in enumerate(lengths):
        if qid is not None and row and qid[row] == qid[row - 1]:
            groups[-1].append(length)
        else:
            groups.append([length])
    shards, rows, nnz = [], 0, 0
    for group in groups:
        if rows and (nnz + sum(group) > shard_nnz or rows + len(group) > max(1, shard_nnz // 4)):
            shards.append(rows)
            rows = nnz = 0
        rows += len(group)
        nnz += sum(group)
    return [*shards, rows]
