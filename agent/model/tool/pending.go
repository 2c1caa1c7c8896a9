package tool

// Pending is a report that a parser emits only after it has read the later lines that belong to it, such as a summary
// with its counts. The zero value has no report.
type Pending struct {
	report Report
	exists bool
}

// Begin returns the report, which begins empty unless there is one.
func (p *Pending) Begin(kind Kind, run int) *Report {
	if !p.exists {
		p.report.Reset(kind, run)
		p.exists = true
	}
	return &p.report
}

// Report returns the report that was begun; nil if there is none.
func (p *Pending) Report() *Report {
	if !p.exists {
		return nil
	}
	return &p.report
}

// Emit emits the report, if there is one. Afterwards there is none.
func (p *Pending) Emit(emit func(*Report)) {
	if p.exists {
		p.exists = false
		emit(&p.report)
	}
}
