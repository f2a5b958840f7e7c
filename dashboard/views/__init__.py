"""The pages, one file or package each. Views only render: they do no I/O of their own and make no decisions."""
