"""model_selection"""
