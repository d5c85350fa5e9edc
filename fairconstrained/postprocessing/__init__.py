"""postprocessing"""
