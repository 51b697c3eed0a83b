"""Tasks of lm-eval's own kinds over local files, as its users write them."""

from __future__ import annotations

import json
from pathlib import Path

CHOICES = ["two", "a lot of it", "7", "no"]

LIKELIHOOD = """
task: toy_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
target_delimiter: " "
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""

GENERATION = """
task: toy_words
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{choices[answer]}}}}"
generation_kwargs: {{until: ["3", "z"], do_sample: false, max_gen_toks: 24}}
metric_list: [{{metric: exact_match}}]
"""


def write_tasks(folder: Path, count: int = 12) -> None:
    """A multiple-choice task, judged by log-likelihoods, and one judged by what is generated."""
    data = folder / "data.jsonl"
    rows = [
        {"question": f"how many is {k} + {k + 1}?", "choices": CHOICES, "answer": k % 4}
        for k in range(count)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in (("choice", LIKELIHOOD), ("words", GENERATION)):
        (folder / f"toy_{name}.yaml").write_text(text.format(data=data))
