// Package spend counts what a run spends on models, and stops it at its caps. An
// Account holds what the run may spend over all of its turns: a call is funded
// before it is made, and ends when it outgrows its funds.
//
// It makes no calls, reads no clock and knows no prices: those who do tell it.
package spend
