package report

import (
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// shortStatements is the table for a terminal of some width, 0 for any: texts are cut.
func shortStatements(all *review.Statements, width int) *table.Table {
	t := review.StatementTable(all, review.StatementsInText)
	longest := 60
	if width > 0 {
		texts := 0
		for _, row := range t.Rows {
			texts = max(texts, utf8.RuneCountInString(row[0].String()))
		}
		longest = max(24, width-(t.Width()-texts))
	}
	for _, row := range t.Rows {
		row[0] = table.Text(table.Clip(row[0].String(), longest))
	}
	return t
}
