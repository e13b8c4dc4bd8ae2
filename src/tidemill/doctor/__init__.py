"""`tidemill doctor`: what is wrong with a store, and what to do about it.

`examination.examine` asks the store and hands what it answers to the rules, which are functions
from facts to findings: one module for each thing that is looked at.
"""
